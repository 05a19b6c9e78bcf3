#pragma once
// A mixture in exact blocks as the order of one rank.

#include <memory>
#include <vector>

#include "data/order/block_mixture.h"
#include "data/order/index_order.h"
#include "data/order/sampler.h"

namespace kf {

class BlockSampler final : public Sampler {
 public:
  /// `orders`: of each source, in the order in which their samples follow each other in the concatenation.
  BlockSampler(std::shared_ptr<BlockMixture> mixture, std::vector<std::shared_ptr<const IndexOrder>> orders, const SamplerOptions& options);

  std::int64_t size() const override { return mixture_->size() / options_.world; }
  std::int64_t pass() const override { return total_ / options_.world; }
  bool endless() const override { return true; }
  void read(std::int64_t epoch, std::int64_t first, std::span<std::int64_t> out) const override;

 private:
  std::shared_ptr<BlockMixture> mixture_;
  std::vector<std::shared_ptr<const IndexOrder>> orders_;
  std::vector<std::int64_t> offsets_;
  std::int64_t total_ = 0;
  SamplerOptions options_;
};

}  // namespace kf
