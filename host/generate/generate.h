#pragma once
// Text from a model: one token after the other, several texts at a time, with a key-value cache where the model has one.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/tokenizer/tokenizer.h"
#include "generate/completion.h"
#include "generate/prompt_ids.h"
#include "model/model.h"

namespace kf {

/// Chooses the next token. One serves one text after the other.
class TokenChooser {
 public:
  virtual ~TokenChooser() = default;
  /// A text begins with these ids, under these options.
  virtual void begin(const std::vector<std::int64_t>& /*prompt*/, const GenerateOptions& /*options*/) {}
  /// logits (B, V) -> ids (B) int64; generation asks for one text at a time, B = 1.
  virtual at::Tensor next(const at::Tensor& logits) = 0;
  /// Another one of the same kind, for a text beside this one's. Null: texts are written one after the other.
  virtual std::unique_ptr<TokenChooser> fork() const { return nullptr; }
};

/// The native one: `TextDraws`.
std::unique_ptr<TokenChooser> plain_sampler();

struct GenerateRequest {
  std::vector<std::vector<std::int64_t>> prompts;
  GenerateOptions options = {};
  std::vector<std::int64_t> ends = {};   // ids that end a document, and so an answer
  const Tokenizer* tokenizer = nullptr;  // null: answers have no text, and stop texts are refused
  at::Device device = at::kCPU;
  std::int64_t max_positions = 0;  // model.max_seq_len; 0: not known here, the model itself complains
  std::int64_t vocab_size = 0;     // model.vocab_size: stop ids are below it; 0: not known here
  std::int64_t batch_size = 16;    // texts at a time, at most
  /// Text of a prompt as it becomes certain; may be empty.
  std::function<void(std::size_t prompt, const std::string& bytes)> on_text = {};
};

/// Answers in the order of the prompts. Prompts of different lengths share a batch behind padding that nobody sees: each gets the
/// logits that it has alone up to rounding (about 1e-6 of them in fp32), and draws from its own seed. One at a time go models that take no
/// padding (experts with a capacity, parts in Lua) and samplers that cannot be forked. Every token has the logits of a forward over the
/// whole text up to it: a model without a cache runs over all of it for each token, which is logged, and so does one whose numbers change
/// as the text grows (Model::keeps_cache), where they do. Throws Code::config for an empty prompt, and for one that leaves less room than
/// max_new_tokens (with `shorten`: none) below max_positions. Leaves the model's mode as it was, and the default generators: what draws
/// from them (samplers in Lua, parts that draw in evaluation) gets numbers that options.seed decides.
std::vector<Completion> generate(Model& model, const GenerateRequest& request);

/// One prompt without text: the continuation as ids.
std::vector<std::int64_t> generate_ids(Model& model, const std::vector<std::int64_t>& prompt, const GenerateOptions& options,
                                       std::optional<std::int64_t> eos, at::Device device);

}  // namespace kf
