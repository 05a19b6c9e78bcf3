#include "data/order/phases.h"

#include <algorithm>

#include "core/error.h"
#include "core/text.h"
#include "data/order/mixture.h"

namespace kf {
namespace {

std::string place(std::size_t index, const config::TrainingPhase& phase) {
  return format("data.phases[{}] (start_step = {})", index, phase.start_step);
}

/// A phase from step 0 on takes the place of what was there.
void append(std::vector<OrderPhase>& out, OrderPhase phase) {
  if (phase.start_step == 0) {
    phase.sampler = phase.sampler ? phase.sampler : out.front().sampler;
    out.clear();
  }
  out.push_back(std::move(phase));
}

}  // namespace

std::vector<double> mixture_weights(const MixtureSpec& spec, const std::map<std::string, double>& changed) {
  std::vector<double> weights = spec.weights;
  for (const auto& [name, weight] : changed) {
    const auto at = std::find(spec.names.begin(), spec.names.end(), name);
    if (at == spec.names.end()) {
      const std::string near = nearest(name, spec.names);
      fail(Code::data, "no data set '{}' in the mixture{}; have: {}", name, near.empty() ? "" : "; did you mean '" + near + "'?",
           join(spec.names, ", "));
    }
    weights[static_cast<std::size_t>(at - spec.names.begin())] = weight;
  }
  return weights;
}

std::vector<config::TrainingPhase> phases_of(const config::DataConfig& data) {
  if (data.anneal_start_step > 0 && !data.anneal_weights.empty()) {
    return {{data.anneal_start_step, data.anneal_weights, 1.0}};
  }
  return data.phases;
}

std::vector<OrderPhase> mixture_phases(const MixtureSpec& spec, const std::vector<config::TrainingPhase>& phases,
                                       const SamplerOptions& options) {
  const auto sampler = [&](const std::vector<double>& weights) {
    return std::make_shared<MixtureSampler>(spec.sizes, weights, spec.temperature, options);
  };
  std::vector<OrderPhase> out{{0, sampler(spec.weights)}};
  for (std::size_t i = 0; i < phases.size(); ++i) {
    try {
      append(out, {phases[i].start_step, sampler(mixture_weights(spec, phases[i].dataset_weights))});
    } catch (Error& error) {
      throw error.context("in " + place(i, phases[i]));
    }
  }
  return out;
}

std::vector<OrderPhase> plain_phases(std::shared_ptr<const Sampler> sampler, const std::vector<config::TrainingPhase>& phases) {
  std::vector<OrderPhase> out{{0, std::move(sampler)}};
  for (std::size_t i = 0; i < phases.size(); ++i) {
    KF_CHECK(phases[i].dataset_weights.empty(), Code::data,
             "{} weighs data set '{}', but there is no mixture: list the data sets in data.datasets, or leave the weights out",
             place(i, phases[i]), phases[i].dataset_weights.begin()->first);
    append(out, {phases[i].start_step, nullptr});
  }
  return out;
}

}  // namespace kf
