#include "run/run_checks.h"

#include <algorithm>

#include "config/plan/batch_plan.h"
#include "core/error.h"
#include "core/log.h"
#include "core/name_pattern.h"
#include "data/documents/data_record.h"

namespace kf {

at::ScalarType compute_type(const config::TrainConfig& train) {
  return train.mixed_precision == "bf16" ? at::kBFloat16 : train.mixed_precision == "fp16" ? at::kHalf : at::kFloat;
}

Peak peak_of(const ComputeDevice& compute, const config::TrainConfig& train) {
  return compute.device.is_cuda() ? cuda_peak(compute.name, compute.capability) : measure_cpu_peak(compute_type(train));
}

void check_plan(const config::Config& config, const Registries& registries, Model& model) {
  const std::string& name = config.distributed.plan;
  if (name.empty()) {
    return;
  }
  std::vector<std::string> weights;
  for (const ParameterPtr& parameter : model.parameters()) {
    weights.push_back(parameter->name);
  }
  for (const auto& [pattern, how] : make_part(registries.parallel_plan, name, config, registries)) {
    try {
      match_names({pattern}, weights, format("parallel_plan '{}'", name));
    } catch (const Error& error) {
      const std::string& origin = registries.parallel_plan.get(name).info.origin;
      if (origin != "native") {  // a part gave a wrong result
        throw Error(Code::script, format("{}: {}", origin, error.what()));
      }
      throw;
    }
  }
  if (config.distributed.tp == 1) {
    log::info("distributed.plan = \"{}\" is checked; with one rank along tp nothing is split", name);
  }
}

void end_with_data(const config::Config& config, const Loader& data, config::Plan& plan) {
  const bool changes = std::any_of(config.phases.begin(), config.phases.end(),
                                   [](const auto& phase) { return phase.batch_size || phase.seq_len || !phase.mixture.empty(); });
  if (changes || data.end() == Loader::kEndless) {
    return;
  }
  const config::BatchPlan batches(config.train, plan.data_ranks);
  std::int64_t steps = batches.steps_for(data.end());
  steps -= batches.first_micro(steps) > data.end() ? 1 : 0;
  KF_CHECK(steps > 0, Code::data, "the data end before the first update: it takes {} micro-batches and there are {}", batches.micros(0),
           data.end());
  if (steps < plan.max_steps) {
    plan.notes.push_back(format("the data end after {} steps, before the {} of train.max_steps", grouped(steps), grouped(plan.max_steps)));
    plan.max_steps = steps;
  }
}

std::string data_record_of(const Loader& training, const std::vector<EvalSet>& sets) {
  std::vector<EvalRecord> evaluation;
  for (const EvalSet& set : sets) {
    evaluation.push_back({set.name, set.data->fingerprint()});
  }
  return data_record(training.fingerprint(), evaluation);
}

}  // namespace kf
