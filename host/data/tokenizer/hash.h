#pragma once
// A quick hash for tables in memory: it may differ between machines and is never written down.

#include <cstdint>
#include <cstring>
#include <string_view>

namespace kf {

inline std::uint64_t mix64(std::uint64_t a, std::uint64_t b) {
  const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

inline std::uint64_t quick_hash(std::string_view bytes) {
  std::uint64_t state = 0x9e3779b97f4a7c15U ^ bytes.size();
  const char* p = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; p += 8, left -= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, p, 8);
    state = mix64(state ^ word, 0xa0761d6478bd642fU);
  }
  std::uint64_t word = 0;
  std::memcpy(&word, p, left);
  return mix64(state ^ word, 0xe7037ed1a0b428dbU);
}

}  // namespace kf
