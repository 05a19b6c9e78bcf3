#pragma once
// Who reads which sample when: the order of one rank for one epoch.

#include <cstdint>
#include <memory>
#include <vector>

namespace kf {

/// What every order depends on besides the data.
struct SamplerOptions {
  std::int64_t rank = 0;   // data-parallel rank
  std::int64_t world = 1;  // data-parallel size
  std::int64_t seed = 0;   // the permutation of an epoch comes from a generator seeded with seed + epoch
  bool shuffle = true;
  bool drop_last = true;  // false: wrap around to the start so that every rank has the same number
};

class Sampler {
 public:
  virtual ~Sampler() = default;
  /// Samples that this rank reads in one epoch; the same on all ranks.
  virtual std::int64_t size() const = 0;
  /// Their indices, in order.
  virtual std::vector<std::int64_t> order(std::int64_t epoch) const = 0;
};

/// A stream of permutations from one seed: at::randperm on a CPU generator, so the orders are those of torch.
class Permutations {
 public:
  explicit Permutations(std::int64_t seed);
  ~Permutations();
  Permutations(const Permutations&) = delete;
  Permutations& operator=(const Permutations&) = delete;

  /// The next one, of 0..n-1. Continues the stream: two calls are not two fresh generators.
  std::vector<std::int64_t> next(std::int64_t n);

 private:
  struct State;  // keeps ATen out of this header
  std::unique_ptr<State> state_;
};

/// Ranks take every world-th entry of one permutation of 0..samples-1, trimmed (or padded) to a multiple of world.
class DistributedSampler final : public Sampler {
 public:
  /// Throws Code::data when rank is not below world.
  DistributedSampler(std::int64_t samples, const SamplerOptions& options);

  std::int64_t size() const override;
  std::vector<std::int64_t> order(std::int64_t epoch) const override;

 private:
  std::int64_t samples_;
  SamplerOptions options_;
};

/// The share of one rank of a list that all ranks hold: trimmed or wrap-padded to a multiple of world, then every world-th entry.
std::vector<std::int64_t> share_of_rank(const std::vector<std::int64_t>& all, const SamplerOptions& options);
/// Its length: floor(samples / world), or the ceiling without drop_last.
std::int64_t share_size(std::int64_t samples, const SamplerOptions& options);

}  // namespace kf
