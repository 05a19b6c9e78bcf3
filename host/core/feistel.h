#pragma once
// Permutations that need no memory: any entry of one is computed from its place and a key.

#include <cstdint>

namespace kf {

/// A key from a seed and what it is used for (an epoch, a block, ...): equal on every machine and in every release.
std::uint64_t mix_keys(std::uint64_t seed, std::uint64_t use);

/// A pseudo-random permutation of 0..size-1: a Feistel network over the next power of two, walked until it falls below `size` (Black and
/// Rogaway, "Ciphers with arbitrary finite domains", 2002: fewer than two rounds of it on average).
class Feistel {
 public:
  /// 1 <= size <= 2^62.
  Feistel(std::int64_t size, std::uint64_t key);

  /// Where `place` goes, 0 <= place < size.
  std::int64_t at(std::int64_t place) const;

 private:
  std::uint64_t encrypt(std::uint64_t x) const;

  std::uint64_t size_;
  std::uint64_t key_;
  unsigned low_bits_;  // the two halves of a number; they may differ by one bit
  unsigned high_bits_;
  unsigned rounds_;
};

}  // namespace kf
