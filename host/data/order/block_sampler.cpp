#include "data/order/block_sampler.h"

namespace kf {

BlockSampler::BlockSampler(std::shared_ptr<BlockMixture> mixture, std::vector<std::shared_ptr<const IndexOrder>> orders,
                           const SamplerOptions& options)
    : mixture_(std::move(mixture)), orders_(std::move(orders)), options_(options) {
  check_rank(options);
  for (const auto& order : orders_) {
    offsets_.push_back(total_);
    total_ += order->size();
  }
}

void BlockSampler::read(std::int64_t epoch, std::int64_t first, std::span<std::int64_t> out) const {
  std::vector<Draw> draws(out.size());
  mixture_->read(first * options_.world + options_.rank, options_.world, draws);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto source = static_cast<std::size_t>(draws[i].source);
    const std::int64_t size = orders_[source]->size();
    out[i] = offsets_[source] + orders_[source]->at(pass_number(epoch, draws[i].ordinal / size), draws[i].ordinal % size);
  }
}

}  // namespace kf
