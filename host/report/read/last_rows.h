#pragma once
// The end of a metrics.jsonl, without the rest.

#include <cstdint>
#include <optional>

#include "core/fs.h"

namespace kf::report {

struct LastRows {
  std::optional<std::int64_t> step;  // of the last whole row
  std::optional<double> loss, tokens_per_sec, tokens, eval_loss;
};

/// Of the last rows that have each; looks at no more than the last mebibyte. A file that is not there has none. Throws Code::other where it
/// cannot be read.
LastRows last_rows(const fs::path& file);

}  // namespace kf::report
