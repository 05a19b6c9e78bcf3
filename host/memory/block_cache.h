#pragma once
// Pieces of memory that were given back, by size.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "memory/caching_allocator.h"

namespace kf {

/// Any thread may take and put.
class BlockCache {
 public:
  /// At least `bytes`, which are more than 0, aligned to 64 bytes; null where the system has no more.
  void* take(std::size_t bytes);
  /// A piece that was taken, by any thread.
  void put(void* piece);
  void release();
  TensorMemoryHeld held() const;

 private:
  struct Block;

  Block* find(std::size_t bytes);
  Block* take_idle(std::size_t size, std::vector<Block*>& surplus);
  std::vector<Block*> all_idle();
  std::vector<Block*> above_limit();
  static Block* make(std::size_t bytes);
  static void drop(const std::vector<Block*>& blocks);

  /// Sizes of small pieces: multiples of 64 bytes, and eight between powers of two.
  static constexpr std::size_t kShelves = 96;
  static std::size_t shelf_of(std::size_t bytes);
  static std::size_t rounded(std::size_t bytes);

  mutable std::mutex mutex_;
  std::array<Block*, kShelves> small_{};
  std::multimap<std::size_t, Block*> large_;
  std::size_t used_ = 0, idle_ = 0;
  std::size_t most_ = 0, most_before_ = 0;  // of used_: in the window that is on, and in the one before
  std::uint64_t taken_ = 0;                 // pieces, ever
};

}  // namespace kf
