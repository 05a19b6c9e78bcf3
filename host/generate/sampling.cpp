#include "generate/sampling.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "core/error.h"

namespace kf {
namespace {

constexpr double kUnit = 1.0 / 9007199254740992.0;  // 2^-53

/// A token that may be drawn. `weight` is its probability times a constant; the likeliest has 1.
struct Candidate {
  std::int64_t id;
  float logit;
  double weight;
};

/// The largest; checks all.
float largest(std::span<const float> logits) {
  float top = -std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    KF_CHECK(!std::isnan(logits[i]) && logits[i] != std::numeric_limits<float>::infinity(), Code::other,
             "the logit of token {} is {}: the model's weights are broken", i, logits[i]);
    top = std::max(top, logits[i]);
  }
  KF_CHECK(std::isfinite(top), Code::other, "no token is left to draw: all {} logits are -inf", logits.size());
  return top;
}

std::vector<Candidate> weigh(std::span<const float> logits, double temperature) {
  const float top = largest(logits);
  std::vector<Candidate> out;
  out.reserve(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    // Differences first: however small the temperature is, the likeliest gets exp(0).
    const double distance = logits[i] == top ? 0.0 : (static_cast<double>(logits[i]) - static_cast<double>(top)) / temperature;
    out.push_back({static_cast<std::int64_t>(i), logits[i], std::exp(distance)});
  }
  return out;
}

void keep_top_k(std::vector<Candidate>& candidates, std::int64_t k) {
  if (k <= 0 || static_cast<std::size_t>(k) >= candidates.size()) {
    return;
  }
  std::vector<float> logits;
  logits.reserve(candidates.size());
  for (const Candidate& candidate : candidates) {
    logits.push_back(candidate.logit);
  }
  std::nth_element(logits.begin(), logits.begin() + (k - 1), logits.end(), std::greater<>());
  const float smallest = logits[static_cast<std::size_t>(k) - 1];
  std::erase_if(candidates, [&](const Candidate& candidate) { return candidate.logit < smallest; });
}

double total(const std::vector<Candidate>& candidates) {
  double sum = 0;
  for (const Candidate& candidate : candidates) {
    sum += candidate.weight;
  }
  return sum;
}

void keep_top_p(std::vector<Candidate>& candidates, double p) {
  if (p >= 1) {
    return;
  }
  const double sum = total(candidates);
  // Those below (1 - p) / n of the mass have less than 1 - p of it together, so none of them is needed: few are left to sort.
  const double floor = std::min(1.0, (1 - p) * sum / static_cast<double>(candidates.size()));
  std::erase_if(candidates, [&](const Candidate& candidate) { return candidate.weight < floor; });
  std::stable_sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) { return a.logit > b.logit; });
  double before = 0;
  std::size_t kept = 0;
  while (kept < candidates.size() && (kept == 0 || before < p * sum)) {
    before += candidates[kept++].weight;
  }
  candidates.resize(kept);
}

}  // namespace

double log_probability(std::span<const float> logits, std::int64_t id) {
  const double top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) {
    sum += std::exp(static_cast<double>(logit) - top);
  }
  return static_cast<double>(logits[static_cast<std::size_t>(id)]) - top - std::log(sum);
}

void penalize(std::span<float> logits, const std::unordered_set<std::int64_t>& occurred, double penalty) {
  for (const std::int64_t id : occurred) {
    if (id >= 0 && id < static_cast<std::int64_t>(logits.size())) {
      float& logit = logits[static_cast<std::size_t>(id)];
      // Back in the range of floats: a tiny penalty must not make a token certain by an infinity.
      const double wanted = logit > 0 ? logit / penalty : logit * penalty;
      constexpr double most = std::numeric_limits<float>::max();
      logit = std::isfinite(logit) ? static_cast<float>(std::clamp(wanted, -most, most)) : logit;
    }
  }
}

std::int64_t choose(std::span<const float> logits, const GenerateOptions& options, double uniform) {
  if (options.temperature == 0) {
    largest(logits);
    return std::max_element(logits.begin(), logits.end()) - logits.begin();
  }
  std::vector<Candidate> candidates = weigh(logits, options.temperature);
  keep_top_k(candidates, options.top_k);
  keep_top_p(candidates, options.top_p);
  std::erase_if(candidates, [&](const Candidate& candidate) { return candidate.weight < options.min_p; });
  double left = uniform * total(candidates);
  for (const Candidate& candidate : candidates) {
    left -= candidate.weight;
    if (left < 0) {
      return candidate.id;
    }
  }
  // Rounding left a little over: the last one that can be drawn.
  const auto last = std::find_if(candidates.rbegin(), candidates.rend(), [](const Candidate& candidate) { return candidate.weight > 0; });
  return last->id;
}

TextDraws::TextDraws(std::span<const std::int64_t> prompt, const GenerateOptions& options) : options_(options), random_(options.seed) {
  if (options_.repetition_penalty != 1) {
    occurred_.insert(prompt.begin(), prompt.end());
  }
}

std::int64_t TextDraws::next(std::span<const float> logits) {
  const double uniform = static_cast<double>(random_() >> 11) * kUnit;
  if (options_.repetition_penalty == 1) {
    return choose(logits, options_, uniform);
  }
  penalized_.assign(logits.begin(), logits.end());
  penalize(penalized_, occurred_, options_.repetition_penalty);
  const std::int64_t id = choose(penalized_, options_, uniform);
  occurred_.insert(id);
  return id;
}

}  // namespace kf
