#include "core/digest.h"

#include <algorithm>
#include <cstring>

#include "core/text.h"

namespace kf {
namespace {

constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio

/// The finalizer of splitmix64: every input bit reaches every output bit.
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

std::uint64_t hash64(std::string_view bytes, std::uint64_t seed) {
  std::uint64_t state = mix(seed + kOdd) ^ (bytes.size() * kOdd);
  // Whole words first; only little-endian machines are supported, so the words are the same everywhere.
  while (bytes.size() >= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), 8);
    state = (state ^ word) * kOdd;
    state ^= state >> 32;
    bytes.remove_prefix(8);
  }
  std::uint64_t rest = 0;
  if (!bytes.empty()) {
    std::memcpy(&rest, bytes.data(), bytes.size());
  }
  return mix((state ^ rest) * kOdd);
}

void Digest::add_file(std::string_view name, std::string_view content) {
  constexpr std::size_t kSample = 65536;
  add(name);
  add(std::to_string(content.size()));
  add(content.substr(0, kSample));
  if (content.size() > kSample) {
    add(content.substr(std::max(kSample, content.size() - kSample)));
  }
}

std::string Digest::hex() const {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out(16, '0');
  std::uint64_t rest = state_;
  for (std::size_t i = 16; i-- > 0; rest >>= 4) {
    out[i] = digits[rest & 15];
  }
  return out;
}

}  // namespace kf
