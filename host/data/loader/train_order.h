#pragma once
// In which order training reads: data.shuffle, data.mix_block, data.epochs and the phases, as an Order.

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "config/plan/batch_plan.h"
#include "data/loader/loader.h"
#include "data/order/block_mixture.h"
#include "data/order/order.h"
#include "data/source/train_data.h"

namespace kf {

using MixtureWeights = std::map<std::string, double>;

/// `blocks` is the mixture that the order's sampler reads, with data.mix_block; else null.
struct TrainOrder {
  Order order;
  std::shared_ptr<BlockMixture> blocks;
};

/// The order of a job from its first micro-batch on, with the phases of `[data]`. Throws Code::data.
TrainOrder make_train_order(const config::Config& config, const TrainData& data, const LoaderOptions& options);
/// One without phases, with these weights by name over those of the sources, and this batch size.
TrainOrder make_plain_order(const config::Config& config, const TrainData& data, const LoaderOptions& options,
                            const std::optional<MixtureWeights>& weights, std::int64_t batch_size);
/// `change` from micro-batch `micro` on, where windows stay as long as they are. Throws Code::data.
void change_order(TrainOrder& order, std::int64_t micro, const DataChange& change, const config::Config& config, const TrainData& data,
                  const LoaderOptions& options);

}  // namespace kf
