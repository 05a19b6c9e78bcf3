#pragma once
// Whole documents as lm-evaluation-harness scores them (loglikelihood_rolling): every token once, each document by itself. Without torch.

#include <cstdint>
#include <string_view>
#include <vector>

#include "train/eval/choice_file.h"

namespace kf {

/// The windows of a document's ids behind `prefix`: the first of up to `max_positions` tokens, each later one of as many that follow, the
/// last filled up with what comes before it, which is not scored again (lm_eval.utils.get_rolling_token_windows with context_len = 1, and
/// make_disjoint_window).
std::vector<ChoiceIds> rolling_windows(const std::vector<std::int64_t>& ids, std::int64_t prefix, std::int64_t max_positions);

/// len(re.split(r"\s+", text)) of Python: what word_perplexity divides by.
std::int64_t count_words(std::string_view text);

/// The length of `text` without the white space (Python's) at its end.
std::size_t without_spaces(std::string_view text);

}  // namespace kf
