#pragma once
// What loaders and the sources behind them need besides the settings.

#include <cstdint>

namespace kf {

struct Registries;

/// What both loaders need besides the config.
struct LoaderOptions {
  std::int64_t rank = 0;                   // data-parallel rank
  std::int64_t world = 1;                  // data-parallel size
  const Registries* registries = nullptr;  // for data sets, transforms and tokenizers that are parts; null: there are none
  bool pinned = false;                     // batches in page-locked memory, for a GPU
};

}  // namespace kf
