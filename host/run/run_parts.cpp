#include "run/run_parts.h"

#include <utility>
#include <vector>

#include "config/plan/budget.h"
#include "core/log.h"
#include "optim/schedules.h"
#include "train/loop/metric.h"

namespace kf {

std::unique_ptr<Optimizer> make_optimizer(const config::Config& config, const Registries& registries, Model& model) {
  const std::vector<ParamGroup> groups = decay_groups(model.parameters(), config.optimizer);
  const config::OptimizerConfig defaults;
  if (config.optimizer.decay_default != defaults.decay_default || !config.optimizer.decay_include.empty() ||
      !config.optimizer.decay_exclude.empty()) {
    log::info("{}", describe_groups(groups));
  }
  return make_part(registries.optimizer, config.optimizer.name, config, registries, groups);
}

std::unique_ptr<Loss> make_loss(const config::Config& config, const Registries& registries) {
  return make_part(registries.loss, config.train.loss_fn, config, registries);
}

std::unique_ptr<Schedule> make_schedule(const config::Config& config, const Registries& registries, const ScheduleSpan& span) {
  const std::int64_t length = config::schedule_length(config.scheduler, span.max_steps);
  return ending(make_part(registries.scheduler, config.scheduler.name, config, registries, ScheduleSpan{length, span.data_ranks}),
                config.scheduler);
}

Hooks make_hooks(const config::Config& config, const Registries& registries, const std::function<std::unique_ptr<Hook>()>& last) {
  std::vector<std::unique_ptr<Hook>> hooks, others;
  for (const std::string& name : config.hooks) {
    hooks.push_back(make_part(registries.hook, name, config, registries));
  }
  for (const std::string& name : config.metrics.extra) {
    others.push_back(metric_hook(name, make_part(registries.metric, name, config, registries), config.metrics.log_interval,
                                 static_cast<std::uint64_t>(config.train.seed)));
  }
  if (last) {
    others.push_back(last());
  }
  return Hooks(std::move(hooks), std::move(others));
}

std::unique_ptr<TokenChooser> sampler_of(const config::Config& config, const Registries& registries) {
  return make_part(registries.sampler, config.generate.strategy, config, registries);
}

GenerateOptions generate_options(const config::GenerateConfig& config) {
  GenerateOptions options;
  options.max_new_tokens = config.max_new_tokens;
  options.temperature = config.temperature;
  options.top_k = config.top_k;
  options.top_p = config.top_p;
  options.min_p = config.min_p;
  options.repetition_penalty = config.repetition_penalty;
  options.stop = config.stop;
  options.stop_ids = config.stop_ids;
  options.shorten = true;  // max_new_tokens is a default until somebody asks for a length
  return options;
}

}  // namespace kf
