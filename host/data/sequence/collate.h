#pragma once
// Samples of a data set into one batch.

#include <cstdint>
#include <optional>
#include <span>

#include "data/sequence/batch.h"
#include "data/sequence/dataset.h"

namespace kf {

struct CollateOptions {
  std::int64_t seq_len = 0;
  bool apart = false;               // documents are kept apart; packed data sets always do
  std::optional<std::int64_t> eos;  // ends a document in windows of ids
  bool pinned = false;              // in page-locked memory, from which a GPU copies without waiting
};

/// Rows are `samples` in this order. No samples give a batch of no rows.
Batch collate(const Dataset& data, std::span<const std::int64_t> samples, const CollateOptions& options);
/// With `eos` documents are kept apart.
Batch collate(const Dataset& data, std::span<const std::int64_t> samples, std::int64_t seq_len, std::optional<std::int64_t> eos);

}  // namespace kf
