#pragma once
// Multiple choice: the log-likelihood of each answer behind its context.

#include <c10/core/Device.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/tokenizer/tokenizer.h"
#include "model/model.h"
#include "train/eval/choice_file.h"

namespace kf {

struct ChoiceOptions {
  at::Device device = at::kCPU;
  std::int64_t max_positions = 0;  // model.max_seq_len: longer contexts lose their beginning, which is logged
  std::int64_t batch_size = 16;
  std::string delimiter = " ";  // between context and answer, also behind an empty context
  PromptStyle style = {};       // what stands before a context
};

/// One question's answers.
struct ChoiceScores {
  std::vector<double> loglikelihoods;    // sums over tokens, nats
  std::vector<std::int64_t> characters;  // of each answer as it stands in the file, without the delimiter
  std::vector<std::int64_t> bytes;       // of its UTF-8
  std::int64_t best = 0;                 // the likeliest; the first of equals: acc
  std::int64_t best_by_characters = 0;   // the largest log-likelihood a character: acc_norm
  std::int64_t best_by_bytes = 0;        // the largest log-likelihood a byte: acc_bytes
};

/// Share of right answers and its standard error, sqrt(p (1 - p) / (n - 1)): that of the mean, with the deviation of a sample. Of one
/// question there is none.
struct Accuracy {
  double value = 0;
  std::optional<double> error;
};
Accuracy accuracy_of(const std::vector<bool>& right);

/// In the order of the items. Answers of one length run together; experts with a capacity, where rows compete, run one at a time. Throws
/// Code::data (naming `name` and the line) for an answer that cannot be scored.
std::vector<ChoiceScores> score_choices(Model& model, const Tokenizer& tokenizer, const std::vector<ChoiceItem>& items,
                                        const std::string& name, const ChoiceOptions& options);

}  // namespace kf
