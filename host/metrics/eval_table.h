#pragma once
// An evaluation as the table that rows of metrics, checkpoints and the eval command write.

#include <cstdint>
#include <string>

#include "config/tree/node.h"
#include "metrics/eval_result.h"

namespace kf {

/// {"loss": ..., "perplexity": ..., "tokens": ..., "bits_per_byte"?, "accuracy"?, "ema"?, then NAME: the same of each set}
config::Table to_numbers(const EvalResult& eval);

/// Back, from what JSON made of it. Unknown numbers are passed over. Throws Code::other for values that are none.
EvalResult from_numbers(const config::Table& numbers, std::int64_t step, const std::string& name = {});

}  // namespace kf
