#include "bench/memory.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <atomic>
#include <cstdint>

namespace kf::bench {
namespace {

std::atomic<std::int64_t> held{0};
std::atomic<std::int64_t> peak{0};
std::atomic<std::int64_t> base{0};

void note(std::int64_t bytes) {
  const std::int64_t now = held += bytes;
  std::int64_t before = peak;
  while (now > before && !peak.compare_exchange_weak(before, now)) {
  }
}

/// Before each piece lies its size, so that the piece is its own context: some kernels (oneDNN's for bf16) ask for raw memory.
constexpr std::size_t kHeader = 64;  // keeps the alignment
c10::Allocator* usual = nullptr;

void release(void* piece) {
  if (piece != nullptr) {
    auto* const start = static_cast<char*>(piece) - kHeader;
    held -= *reinterpret_cast<std::int64_t*>(start);
    usual->raw_deallocate(start);
  }
}

class Counting final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes == 0) {
      return {nullptr, nullptr, &release, c10::Device(c10::kCPU)};
    }
    auto* const start = static_cast<char*>(usual->raw_allocate(bytes + kHeader));
    *reinterpret_cast<std::int64_t*>(start) = static_cast<std::int64_t>(bytes);
    note(static_cast<std::int64_t>(bytes));
    return {start + kHeader, start + kHeader, &release, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }
};

}  // namespace

void count_memory() {
  static Counting counting;
  usual = c10::GetCPUAllocator();
  c10::SetCPUAllocator(&counting, 100);
}

std::int64_t peak_memory() { return peak - base; }

void reset_peak() {
  base = held.load();
  peak = held.load();
}

}  // namespace kf::bench
