#pragma once
// Windows of a data set into one batch.

#include <cstdint>
#include <optional>
#include <span>

#include "data/batch.h"
#include "data/dataset.h"

namespace kf {

/// Rows are `samples` in this order. With `eos` documents are kept apart (pack_window). No samples give a batch of no rows.
Batch collate(const Dataset& data, std::span<const std::int64_t> samples, std::int64_t seq_len, std::optional<std::int64_t> eos);

}  // namespace kf
