#pragma once
// Who reads which sample when: the order of one rank for one epoch.

#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "data/order/index_order.h"

namespace kf {

/// What every order depends on besides the data.
struct SamplerOptions {
  std::int64_t rank = 0;   // data-parallel rank
  std::int64_t world = 1;  // data-parallel size
  std::int64_t seed = 0;   // the permutation of an epoch comes from a generator seeded with seed + epoch
  bool shuffle = true;
  bool drop_last = true;  // false: wrap around to the start so that every rank has the same number
};

/// Throws Code::data when rank is not below world.
void check_rank(const SamplerOptions& options);

class Sampler {
 public:
  /// Of a size: no end.
  static constexpr std::int64_t kEndless = std::numeric_limits<std::int64_t>::max();

  virtual ~Sampler() = default;
  /// Samples that this rank reads in one epoch, or without a gap until its end; the same on all ranks.
  virtual std::int64_t size() const = 0;
  /// Samples of this rank in one pass over the data.
  virtual std::int64_t pass() const { return size(); }
  /// Whether epochs follow each other inside the order, without a rest that is dropped: then there is one "epoch", of size().
  virtual bool endless() const { return false; }
  /// The indices at first, first + 1, ... of the order of `epoch`.
  virtual void read(std::int64_t epoch, std::int64_t first, std::span<std::int64_t> out) const = 0;
};

/// An order that is made as a whole, an epoch at a time. The list in use is kept: making it for each batch would cost more than the step.
class ListSampler : public Sampler {
 public:
  /// All of an epoch.
  virtual std::vector<std::int64_t> order(std::int64_t epoch) const = 0;
  void read(std::int64_t epoch, std::int64_t first, std::span<std::int64_t> out) const override;

 private:
  mutable std::mutex mutex_;
  mutable std::vector<std::int64_t> list_;
  mutable std::int64_t epoch_ = -1;
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
class DistributedSampler final : public ListSampler {
 public:
  /// Throws Code::data when rank is not below world.
  DistributedSampler(std::int64_t samples, const SamplerOptions& options);

  std::int64_t size() const override;
  std::vector<std::int64_t> order(std::int64_t epoch) const override;

 private:
  std::int64_t samples_;
  SamplerOptions options_;
};

/// The order of torch as one of indices: permutation e of n samples is at::randperm(n) seeded with seed + e, kept while it is in use.
std::unique_ptr<IndexOrder> torch_order(std::int64_t samples, std::int64_t seed);

/// One data set in an order by arithmetic, pass after pass without a gap: sample n of all ranks together is place n % size of pass
/// n / size, whatever the ranks, the batches and the micro-batches are. Another "epoch" is another order altogether.
class IndexSampler final : public Sampler {
 public:
  /// `passes`: the end after so many; 0 for none. Throws Code::data when rank is not below world.
  IndexSampler(std::shared_ptr<const IndexOrder> order, std::int64_t passes, const SamplerOptions& options);

  std::int64_t size() const override { return size_; }
  std::int64_t pass() const override { return order_->size() / options_.world; }
  bool endless() const override { return true; }
  void read(std::int64_t epoch, std::int64_t first, std::span<std::int64_t> out) const override;

 private:
  std::shared_ptr<const IndexOrder> order_;
  SamplerOptions options_;
  std::int64_t size_;
};

/// What an order by arithmetic is asked for in "epoch" `epoch` of an endless sampler, pass `pass` of it.
inline std::int64_t pass_number(std::int64_t epoch, std::int64_t pass) { return (epoch << 32) + pass; }

/// The share of one rank of a list that all ranks hold: trimmed or wrap-padded to a multiple of world, then every world-th entry.
std::vector<std::int64_t> share_of_rank(const std::vector<std::int64_t>& all, const SamplerOptions& options);
/// Its length: floor(samples / world), or the ceiling without drop_last.
std::int64_t share_size(std::int64_t samples, const SamplerOptions& options);

}  // namespace kf
