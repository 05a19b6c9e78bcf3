#pragma once
// [[data.phases]] and annealing as phases of an order.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "config/schema/config.h"
#include "data/order/order.h"
#include "data/order/sampler.h"

namespace kf {

/// data.phases, or the one phase that anneal_start_step and anneal_weights stand for.
std::vector<config::TrainingPhase> phases_of(const config::DataConfig& data);

/// What a MixtureSampler is made from.
struct MixtureSpec {
  std::vector<std::string> names;
  std::vector<std::int64_t> sizes;
  std::vector<double> weights;
  double temperature = 1.0;
};

/// The weights of the sources, `changed` by name. Throws Code::data for a name that no source has.
std::vector<double> mixture_weights(const MixtureSpec& spec, const std::map<std::string, double>& changed);

/// The mixture with its own weights from step 0, then that of each phase: a data set that a phase does not name takes its weight of `spec`.
/// Throws Code::data naming the phase for unknown names and for weights that are all 0.
std::vector<OrderPhase> mixture_phases(const MixtureSpec& spec, const std::vector<config::TrainingPhase>& phases,
                                       const SamplerOptions& options);

/// One data set: phases change nothing of its order, and weights in them are an error.
std::vector<OrderPhase> plain_phases(std::shared_ptr<const Sampler> sampler, const std::vector<config::TrainingPhase>& phases);

}  // namespace kf
