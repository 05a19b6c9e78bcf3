#include "data/loader/train_order.h"

#include <utility>
#include <vector>

#include "config/plan/derived.h"
#include "config/schema/config.h"
#include "core/digest.h"
#include "core/error.h"
#include "data/order/block_sampler.h"
#include "data/order/mixture.h"
#include "data/order/phases.h"
#include "data/order/sampler.h"

namespace kf {
namespace {

SamplerOptions sampler_options(const config::Config& config, const LoaderOptions& options) {
  return {options.rank, options.world, config::data_seed(config.train), true, true};
}

std::shared_ptr<const IndexOrder> order_of(const config::Config& config, std::int64_t size, std::int64_t seed) {
  if (config.data.shuffle == "torch") {
    return torch_order(size, seed);
  }
  return make_index_order(config.data.shuffle, size, seed, config.data.shuffle_window);
}

std::vector<double> probabilities_of(const MixtureSpec& spec, const MixtureWeights& weights) {
  return mixture_probabilities(mixture_weights(spec, weights), spec.temperature);
}

std::shared_ptr<BlockMixture> make_blocks(const config::Config& config, const MixtureSpec& spec, const MixtureWeights& weights) {
  BlockMixtureOptions options;
  options.block = config.data.mix_block;
  options.seed = config::data_seed(config.train);
  options.stop = config.data.mix_stop == "first" ? MixStop::first : config.data.mix_stop == "drop" ? MixStop::drop : MixStop::repeat;
  options.epochs = config.data.epochs;
  return std::make_shared<BlockMixture>(spec.sizes, probabilities_of(spec, weights), options);
}

/// The order of a source depends on its name, not on its place: others may come and go.
std::shared_ptr<const Sampler> block_sampler(const config::Config& config, const TrainData& data, std::shared_ptr<BlockMixture> blocks,
                                             const LoaderOptions& options) {
  std::vector<std::shared_ptr<const IndexOrder>> orders;
  for (std::size_t i = 0; i < data.mixture->names.size(); ++i) {
    KF_CHECK(data.mixture->sizes[i] > 0, Code::data, "data set '{}' of the mixture has no samples; leave it out", data.mixture->names[i]);
    const auto seed =
        static_cast<std::int64_t>(hash64(data.mixture->names[i], static_cast<std::uint64_t>(config::data_seed(config.train))));
    orders.push_back(order_of(config, data.mixture->sizes[i], seed & 0x7fffffff));  // torch's seeds add the pass to it
  }
  return std::make_shared<BlockSampler>(std::move(blocks), std::move(orders), sampler_options(config, options));
}

std::shared_ptr<const Sampler> whole_sampler(const config::Config& config, const TrainData& data, const LoaderOptions& options,
                                             const MixtureWeights& weights) {
  const SamplerOptions sampler = sampler_options(config, options);
  if (data.mixture) {
    return std::make_shared<MixtureSampler>(data.mixture->sizes, mixture_weights(*data.mixture, weights), data.mixture->temperature,
                                            sampler);
  }
  KF_CHECK(weights.empty(), Code::data, "the weight of data set '{}' is set, but there is no mixture: list the data sets in data.datasets",
           weights.begin()->first);
  if (config.data.shuffle == "torch") {
    return std::make_shared<DistributedSampler>(data.data->size(), sampler);
  }
  return std::make_shared<IndexSampler>(order_of(config, data.data->size(), sampler.seed), config.data.epochs, sampler);
}

bool in_blocks(const config::Config& config, const TrainData& data) { return data.mixture && config.data.mix_block > 0; }

}  // namespace

TrainOrder make_train_order(const config::Config& config, const TrainData& data, const LoaderOptions& options) {
  const config::BatchPlan plan(config.train, options.world);
  const std::int64_t batch_size = config.train.batch_size;
  const std::vector<config::TrainingPhase> phases = phases_of(config.data);
  if (!in_blocks(config, data)) {
    if (data.mixture) {
      return {Order(mixture_phases(*data.mixture, phases, sampler_options(config, options)), batch_size, plan), nullptr};
    }
    return {Order(plain_phases(whole_sampler(config, data, options, {}), phases), batch_size, plan), nullptr};
  }
  const auto blocks = make_blocks(config, *data.mixture, {});
  std::vector<config::TrainingPhase> places = phases;  // all that the order itself knows of them
  for (std::size_t i = 0; i < phases.size(); ++i) {
    try {
      blocks->change(plan.first_micro(phases[i].start_step) * batch_size * options.world,
                     probabilities_of(*data.mixture, phases[i].dataset_weights));
    } catch (Error& error) {
      throw error.context(format("in data.phases[{}] (start_step = {})", i, phases[i].start_step));
    }
    places[i].dataset_weights.clear();
  }
  return {Order(plain_phases(block_sampler(config, data, blocks, options), places), batch_size, plan), blocks};
}

TrainOrder make_plain_order(const config::Config& config, const TrainData& data, const LoaderOptions& options,
                            const std::optional<MixtureWeights>& weights, std::int64_t batch_size) {
  const MixtureWeights own = weights.value_or(MixtureWeights{});
  if (!in_blocks(config, data)) {
    return {Order({{0, whole_sampler(config, data, options, own)}}, batch_size, 1), nullptr};
  }
  const auto blocks = make_blocks(config, *data.mixture, own);
  return {Order({{0, block_sampler(config, data, blocks, options)}}, batch_size, 1), blocks};
}

void change_order(TrainOrder& order, std::int64_t micro, const DataChange& change, const config::Config& config, const TrainData& data,
                  const LoaderOptions& options) {
  if (change.weights && order.blocks) {
    order.blocks->change(order.order.samples_before(micro) * options.world, probabilities_of(*data.mixture, *change.weights));
  }
  const bool anew = change.weights && !order.blocks;
  order.order.change(micro, anew ? whole_sampler(config, data, options, *change.weights) : nullptr, change.batch_size.value_or(0));
}

}  // namespace kf
