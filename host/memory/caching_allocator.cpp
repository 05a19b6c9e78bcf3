#include "memory/caching_allocator.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include "core/immortal.h"
#include "memory/block_cache.h"

#if defined(__SANITIZE_ADDRESS__)
#define KF_OWN_PIECES_CHECKED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KF_OWN_PIECES_CHECKED 1
#endif
#endif

namespace kf {
namespace {

constexpr std::uint8_t kPriority = 100;  // torch's own has 0

BlockCache& cache() {
  static Immortal<BlockCache> kept;  // tensors of other statics are freed into it
  return kept.value;
}

void release(void* data) {
  if (data != nullptr) {
    c10::profiledCPUMemoryReporter().Delete(data);
    cache().put(data);
  }
}

/// A piece is its own context: oneDNN's kernels ask for raw memory.
class CachingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes == 0) {
      return {nullptr, nullptr, &release, c10::Device(c10::kCPU)};
    }
    void* const data = cache().take(bytes);
    if (data == nullptr) {
      c10::profiledCPUMemoryReporter().OutOfMemory(bytes);
      // In the words of torch's own, which are known (core/out_of_memory.h).
      TORCH_CHECK(false, "DefaultCPUAllocator: can't allocate memory: you tried to allocate ", bytes, " bytes.");
    }
    c10::profiledCPUMemoryReporter().New(data, bytes);
    return {data, data, &release, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }
};

}  // namespace

bool cache_tensor_memory(bool on) {
#ifdef KF_OWN_PIECES_CHECKED
  return !on;
#else
  static CachingAllocator caching;
  c10::SetCPUAllocator(on ? &caching : c10::GetDefaultCPUAllocator(), kPriority);
  if (!on) {
    release_cached_memory();
  }
  return true;
#endif
}

TensorMemoryHeld tensor_memory_held() { return cache().held(); }

void release_cached_memory() { cache().release(); }

}  // namespace kf
