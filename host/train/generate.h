#pragma once
// Text from a model: one token after the other, with a key-value cache.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/tokenizer/tokenizer.h"
#include "model/model.h"
#include "train/hook.h"

namespace kf {

/// Chooses the next token. One serves one text after the other.
class TokenSampler {
 public:
  virtual ~TokenSampler() = default;
  /// A text begins with these ids, under these options.
  virtual void begin(const std::vector<std::int64_t>& /*prompt*/, const GenerateOptions& /*options*/) {}
  /// logits (B, V) -> ids (B) int64. `generator` is for draws.
  virtual at::Tensor next(const at::Tensor& logits, const GenerateOptions& options, const at::Generator& generator) = 0;
};

/// The native one: `sample`.
std::unique_ptr<TokenSampler> plain_sampler();

/// One id a row from logits (B, V): temperature, then top-k (ties kept), then top-p (the first token always survives; Holtzman et al. 2020,
/// section 3.1), then a draw. Temperature 0 takes the largest. `generator` is used for the draw alone.
at::Tensor sample(const at::Tensor& logits, const GenerateOptions& options, const at::Generator& generator);

/// The prompt's continuation as ids, without the prompt. Stops at `eos`, which is not part of the answer, or after max_new_tokens.
/// Each id is passed to `on_token` as it comes. Throws Code::config when prompt and answer exceed model.max_seq_len. Leaves the model's
/// mode as it was.
std::vector<std::int64_t> generate_ids(Model& model, const std::vector<std::int64_t>& prompt, const GenerateOptions& options,
                                       std::optional<std::int64_t> eos, at::Device device,
                                       const std::function<void(std::int64_t)>& on_token = {});

/// The continuation as text; an empty prompt starts from the end-of-document id.
std::string generate_text(Model& model, const Tokenizer& tokenizer, const std::string& prompt, const GenerateOptions& options,
                          at::Device device, const std::function<void(const std::string&)>& on_text = {});

}  // namespace kf
