#pragma once
// A loop over the blocks of many tensors at once: small ones cost no loop of their own.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/simd/threads.h"

namespace kf::simd {

/// Blocks of tensors, one tensor behind the other.
class BlockList {
 public:
  /// Another tensor of `numbers` numbers, `block` a block.
  void add(std::int64_t numbers, std::int64_t block) { ends_.push_back(count() + (numbers + block - 1) / block); }
  std::int64_t count() const { return ends_.empty() ? 0 : ends_.back(); }
  /// Of tensor `i`, its first block.
  std::int64_t begin(std::size_t i) const { return i == 0 ? 0 : ends_[i - 1]; }

  /// body(tensor, first, end) for pieces of tensors, by blocks of their own, on all threads (see `share`).
  template <class Body>
  void share(std::int64_t grain, const Body& body) const {
    simd::share(count(), grain, [&](std::int64_t first, std::int64_t end, int /*thread*/) {
      auto i = static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), first) - ends_.begin());
      for (; i < ends_.size() && begin(i) < end; ++i) {
        const std::int64_t from = begin(i);
        body(i, std::max(first, from) - from, std::min(end, ends_[i]) - from);
      }
    });
  }

 private:
  std::vector<std::int64_t> ends_;  // blocks up to and with each tensor
};

}  // namespace kf::simd
