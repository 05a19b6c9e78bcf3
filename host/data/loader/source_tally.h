#pragma once
// How often each source of a mixture has been read through so far.

#include <cstdint>
#include <vector>

namespace kf {

/// A sum over micro-batches that only goes on. Nothing is saved: after a resume it is counted once from the start, from the order alone.
class SourceTally {
 public:
  /// Passes of each of `sources` before micro-batch `index`. `read(micro, passes)` adds what one micro-batch is of them.
  template <class Read>
  const std::vector<double>& until(std::int64_t index, std::size_t sources, const Read& read) {
    if (index < next_ || passes_.size() != sources) {
      forget();
      passes_.assign(sources, 0);
    }
    for (; next_ < index; ++next_) {
      read(next_, passes_);
    }
    return passes_;
  }
  /// The order has changed.
  void forget() {
    next_ = 0;
    passes_.clear();
  }

 private:
  std::int64_t next_ = 0;
  std::vector<double> passes_;
};

}  // namespace kf
