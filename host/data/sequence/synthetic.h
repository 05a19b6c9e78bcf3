#pragma once
// Uniform random ids, for runs that only try the machinery.

#include <cstdint>

#include "data/sequence/dataset.h"

namespace kf {

/// Sample `index` is a pure function of (seed, index): nothing is stored, and any rank count sees the same samples.
class SyntheticDataset final : public Dataset {
 public:
  SyntheticDataset(std::int64_t vocab_size, std::int64_t seed) : vocab_size_(vocab_size), seed_(seed) {}

  std::int64_t size() const override { return std::int64_t{1} << 62; }
  void get(std::int64_t index, std::span<std::int64_t> window) const override;
  std::string describe() const override;
  std::string fingerprint() const override;

 private:
  std::int64_t vocab_size_;
  std::int64_t seed_;
};

}  // namespace kf
