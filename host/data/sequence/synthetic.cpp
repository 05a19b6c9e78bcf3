#include "data/sequence/synthetic.h"

#include "core/digest.h"
#include "core/text.h"

namespace kf {

void SyntheticDataset::get(std::int64_t index, std::span<std::int64_t> window) const {
  const std::uint64_t start = hash64(std::to_string(index), static_cast<std::uint64_t>(seed_));
  for (std::size_t i = 0; i < window.size(); ++i) {
    std::uint64_t x = start + i * 0x9e3779b97f4a7c15;  // splitmix64
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    x ^= x >> 31;
    // The upper half scaled to the vocabulary: no division, and a bias below 2^-32 * vocab_size.
    window[i] = static_cast<std::int64_t>(((x >> 32) * static_cast<std::uint64_t>(vocab_size_)) >> 32);
  }
}

std::string SyntheticDataset::describe() const { return format("synthetic: uniform random ids below {}", grouped(vocab_size_)); }

std::string SyntheticDataset::fingerprint() const { return format("synthetic-{}-{}", vocab_size_, seed_); }

}  // namespace kf
