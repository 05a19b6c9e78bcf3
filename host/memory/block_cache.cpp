#include "memory/block_cache.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <new>
#include <utility>

namespace kf {
namespace {

constexpr std::size_t kSmall = std::size_t{1} << 20;  // larger pieces are mapped, each by itself
constexpr std::size_t kHuge = std::size_t{1} << 30;   // larger ones serve their own size alone
constexpr std::size_t kMost = std::size_t{1} << 62;   // of a piece; sums do not overflow
constexpr std::size_t kPage = 4096;
constexpr std::size_t kSpare = std::size_t{32} << 20;      // see limit
constexpr std::uint64_t kWindow = std::uint64_t{1} << 16;  // pieces taken: some tens of steps

std::size_t up_to(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

/// Where sizes are alike, step after step, each piece finds its like; what is above the most in use is for those whose like was given to
/// another. A quarter leaves one fault in seven of those without a cache, an eighth one in three (bf16, vocabulary of 32,000).
std::size_t limit(std::size_t most) { return most + most / 4 + kSpare; }

/// Small pieces are multiples of a power of two, this one, of which they have 9 to 16; below 512 bytes fewer, of 64 bytes.
constexpr std::size_t kLeastShift = 6;
std::size_t shift_of(std::size_t bytes) {
  const auto bits = static_cast<std::size_t>(std::bit_width(bytes - 1));
  return bits > kLeastShift + 4 ? bits - 4 : kLeastShift;
}

/// `bytes` of fresh pages, null where there are none. Huge pages were tried: on a busy virtual machine the system took 2.4 s of a start
/// with them, and 0.7 s without.
void* map_pages(std::size_t bytes) {
  void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return mapped == MAP_FAILED ? nullptr : mapped;
}

}  // namespace

/// Stands before its piece.
struct alignas(64) BlockCache::Block {
  std::size_t bytes;         // of the piece
  Block* next = nullptr;     // on its shelf
  std::uint64_t put_at = 0;  // in pieces taken

  void* piece() { return this + 1; }
  static Block* of(void* piece) { return static_cast<Block*>(piece) - 1; }
};

std::size_t BlockCache::shelf_of(std::size_t bytes) {
  const std::size_t shift = shift_of(bytes);
  return (shift - kLeastShift) * 8 + ((bytes - 1) >> shift);
}

std::size_t BlockCache::rounded(std::size_t bytes) {
  if (bytes > kSmall) {
    return up_to(bytes + sizeof(Block), kPage) - sizeof(Block);
  }
  const std::size_t shift = shift_of(bytes);
  return (((bytes - 1) >> shift) + 1) << shift;
}

BlockCache::Block* BlockCache::make(std::size_t bytes) {
  const std::size_t whole = bytes + sizeof(Block);
  void* const memory = bytes > kSmall ? map_pages(whole) : std::aligned_alloc(alignof(Block), whole);
  return memory == nullptr ? nullptr : new (memory) Block{bytes};
}

void BlockCache::drop(const std::vector<Block*>& blocks) {
  for (Block* const block : blocks) {
    if (block->bytes > kSmall) {
      ::munmap(block, block->bytes + sizeof(Block));
    } else {
      std::free(block);
    }
  }
}

/// One that is idle; null where there is none.
BlockCache::Block* BlockCache::find(std::size_t bytes) {
  if (bytes <= kSmall) {
    Block*& first = small_[shelf_of(bytes)];
    Block* const found = first;
    if (found != nullptr) {
      first = found->next;
    }
    return found;
  }
  const auto found = large_.lower_bound(bytes);
  if (found == large_.end() || found->first > bytes + (bytes > kHuge ? 0 : bytes / 8)) {
    return nullptr;
  }
  Block* const block = found->second;
  large_.erase(found);
  return block;
}

BlockCache::Block* BlockCache::take_idle(std::size_t size, std::vector<Block*>& surplus) {
  const std::lock_guard lock(mutex_);
  const bool window_over = ++taken_ % kWindow == 0;
  if (window_over) {
    most_before_ = std::exchange(most_, used_);
  }
  Block* const found = find(size);
  idle_ -= found != nullptr ? found->bytes : 0;
  used_ += found != nullptr ? found->bytes : size;
  most_ = std::max(most_, used_);
  if (found == nullptr || window_over) {
    surplus = above_limit();
  }
  return found;
}

void* BlockCache::take(std::size_t bytes) {
  if (bytes > kMost) {
    return nullptr;
  }
  const std::size_t size = rounded(bytes);
  std::vector<Block*> surplus;
  Block* block = take_idle(size, surplus);
  drop(surplus);
  if (block == nullptr) {
    block = make(size);
  }
  if (block == nullptr) {
    release();
    block = make(size);
  }
  if (block == nullptr) {
    const std::lock_guard lock(mutex_);
    used_ -= size;
  }
  return block != nullptr ? block->piece() : nullptr;
}

void BlockCache::put(void* piece) {
  Block* const block = Block::of(piece);
  const std::lock_guard lock(mutex_);
  used_ -= block->bytes;
  idle_ += block->bytes;
  block->put_at = taken_;
  if (block->bytes > kSmall) {
    large_.emplace(block->bytes, block);
  } else {
    Block*& first = small_[shelf_of(block->bytes)];
    block->next = first;
    first = block;
  }
}

std::vector<BlockCache::Block*> BlockCache::all_idle() {
  std::vector<Block*> out;
  for (const auto& [bytes, block] : large_) {
    out.push_back(block);
  }
  large_.clear();
  for (Block*& first : small_) {
    for (; first != nullptr; first = first->next) {
      out.push_back(first);
    }
  }
  idle_ = 0;
  return out;
}

/// What is to be dropped, of large pieces those that have lain longest; all small ones where that is not enough.
std::vector<BlockCache::Block*> BlockCache::above_limit() {
  std::vector<Block*> out;
  const std::size_t most = limit(std::max(most_, most_before_));
  while (used_ + idle_ > most && !large_.empty()) {
    const auto oldest =
        std::min_element(large_.begin(), large_.end(), [](const auto& a, const auto& b) { return a.second->put_at < b.second->put_at; });
    out.push_back(oldest->second);
    idle_ -= oldest->first;
    large_.erase(oldest);
  }
  if (used_ + idle_ > most) {
    const std::vector<Block*> small = all_idle();
    out.insert(out.end(), small.begin(), small.end());
  }
  return out;
}

void BlockCache::release() {
  std::vector<Block*> idle;
  {
    const std::lock_guard lock(mutex_);
    idle = all_idle();
  }
  drop(idle);
}

TensorMemoryHeld BlockCache::held() const {
  const std::lock_guard lock(mutex_);
  return {static_cast<std::int64_t>(used_), static_cast<std::int64_t>(idle_)};
}

}  // namespace kf
