#pragma once
// How much memory tensors take, as torch's allocator reports it.

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <cstdint>
#include <memory>

namespace kf::test {

/// Bytes of CPU tensors of this thread that are alive, and the most there were, since it was made. Backward runs on this thread, too.
class TensorMemory : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void* /*ptr*/, std::int64_t bytes, std::size_t /*allocated*/, std::size_t /*reserved*/,
                         c10::Device /*device*/) override {
    now_ += bytes;
    most_ = std::max(most_, now_);
  }
  bool memoryProfilingEnabled() const override { return true; }
  double now() const { return static_cast<double>(now_); }
  double most() const { return static_cast<double>(most_); }
  void reset() { most_ = now_; }

 private:
  std::int64_t now_ = 0;
  std::int64_t most_ = 0;
};

}  // namespace kf::test
