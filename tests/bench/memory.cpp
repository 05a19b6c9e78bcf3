#include "bench/memory.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <atomic>
#include <memory>

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

/// A piece of memory of the usual allocator, with its size.
struct Block {
  Block(c10::DataPtr of, std::int64_t size) : data(std::move(of)), bytes(size) { note(bytes); }
  ~Block() { held -= bytes; }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  c10::DataPtr data;
  std::int64_t bytes;
};

void release(void* block) { delete static_cast<Block*>(block); }  // NOLINT: the context of a DataPtr is a void*

class Counting final : public c10::Allocator {
 public:
  explicit Counting(c10::Allocator* usual) : usual_(usual) {}
  c10::DataPtr allocate(std::size_t bytes) override {
    auto block = std::make_unique<Block>(usual_->allocate(bytes), static_cast<std::int64_t>(bytes));
    void* const memory = block->data.get();
    return {memory, block.release(), &release, c10::Device(c10::kCPU)};
  }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }

 private:
  c10::Allocator* usual_;
};

}  // namespace

void count_memory() {
  static Counting counting(c10::GetCPUAllocator());
  c10::SetCPUAllocator(&counting, 100);
}

std::int64_t peak_memory() { return peak - base; }

void reset_peak() {
  base = held.load();
  peak = held.load();
}

}  // namespace kf::bench
