#pragma once
// From logits to the next token, without torch: penalties, cuts, the draw.

#include <cstdint>
#include <random>
#include <span>
#include <unordered_set>
#include <vector>

#include "generate/completion.h"

namespace kf {

/// log softmax(logits)[id], in double.
double log_probability(std::span<const float> logits, std::int64_t id);

/// Logits of ids that have occurred: positive ones divided by `penalty`, negative ones multiplied (Keskar et al. 2019, section 4.1, with
/// the sign minded as Hugging Face does). Ids outside of the logits are passed over.
void penalize(std::span<float> logits, const std::unordered_set<std::int64_t>& occurred, double penalty);

/// One id. `uniform` is a number in [0, 1) that decides the draw. In this order: temperature (0 takes the likeliest, the first of equals),
/// top_k (equals of the k-th stay), top_p (the likeliest whose mass before them is below p; Holtzman et al. 2020, section 3.1), min_p (at
/// least this share of the likeliest's probability; Nguyen et al. 2024). The likeliest always stays. Temperatures near 0 and
/// infinity give the limits, not numbers that overflow. Throws Code::other when a logit is NaN or positive infinity, or none is finite.
std::int64_t choose(std::span<const float> logits, const GenerateOptions& options, double uniform);

/// The draws of one text.
class TextDraws {
 public:
  TextDraws(std::span<const std::int64_t> prompt, const GenerateOptions& options);
  /// The next id; it counts as occurred from then on.
  std::int64_t next(std::span<const float> logits);

 private:
  GenerateOptions options_;
  std::mt19937_64 random_;
  std::unordered_set<std::int64_t> occurred_;  // kept with a penalty only
  std::vector<float> penalized_;
};

}  // namespace kf
