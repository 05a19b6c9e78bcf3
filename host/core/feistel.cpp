#include "core/feistel.h"

#include <algorithm>
#include <bit>

#include "core/error.h"

namespace kf {
namespace {

constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio
/// Four rounds are enough for large halves (Luby and Rackoff); halves of a few bits mix slower.
unsigned rounds_for(unsigned bits) { return bits <= 8 ? 32 : bits <= 16 ? 12 : 8; }

/// The finalizer of splitmix64: every input bit reaches every output bit.
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

std::uint64_t mix_keys(std::uint64_t seed, std::uint64_t use) { return mix(mix(seed + kOdd) ^ (use * kOdd + 0x2545f4914f6cdd1d)); }

Feistel::Feistel(std::int64_t size, std::uint64_t key) : size_(static_cast<std::uint64_t>(size)), key_(key) {
  KF_CHECK(size >= 1 && size <= (std::int64_t{1} << 62), Code::data, "a permutation of {} entries: there must be 1 to 2^62", size);
  const auto bits = std::max(2U, static_cast<unsigned>(std::bit_width(size_ - 1)));
  low_bits_ = (bits + 1) / 2;
  high_bits_ = bits - low_bits_;
  rounds_ = rounds_for(bits);
}

std::uint64_t Feistel::encrypt(std::uint64_t x) const {
  const std::uint64_t low_mask = (std::uint64_t{1} << low_bits_) - 1;
  const std::uint64_t high_mask = (std::uint64_t{1} << high_bits_) - 1;
  std::uint64_t low = x & low_mask;
  std::uint64_t high = x >> low_bits_;
  std::uint64_t round_key = key_;
  for (unsigned round = 0; round < rounds_; round += 2) {
    high ^= mix((low + 1) * kOdd ^ round_key) & high_mask;
    low ^= mix((high + 1) * kOdd ^ (round_key + kOdd)) & low_mask;
    round_key = mix(round_key + kOdd);
  }
  return high << low_bits_ | low;
}

std::int64_t Feistel::at(std::int64_t place) const {
  if (size_ == 1) {
    return 0;
  }
  std::uint64_t x = encrypt(static_cast<std::uint64_t>(place));
  while (x >= size_) {
    x = encrypt(x);
  }
  return static_cast<std::int64_t>(x);
}

}  // namespace kf
