#include "run/run_parts.h"

#include <utility>

#include "config/plan/budget.h"
#include "core/log.h"
#include "optim/schedules.h"
#include "train/loop/metric.h"

namespace kf {

std::unique_ptr<Optimizer> make_optimizer(const config::Config& config, const Registries& registries, Model& model) {
  const std::string& name = config.optimizer.name;
  const PartArgs args{config, Registries::options_of(config, "optimizer", name), registries};
  const std::vector<ParamGroup> groups = decay_groups(model.parameters(), config.optimizer);
  const config::OptimizerConfig defaults;
  if (config.optimizer.decay_default != defaults.decay_default || !config.optimizer.decay_include.empty() ||
      !config.optimizer.decay_exclude.empty()) {
    log::info("{}", describe_groups(groups));
  }
  return registries.optimizer.get(name).factory(args, groups);
}

std::unique_ptr<Loss> make_loss(const config::Config& config, const Registries& registries) {
  const std::string& name = config.train.loss_fn;
  return registries.loss.get(name).factory({config, Registries::options_of(config, "loss", name), registries});
}

std::unique_ptr<Schedule> make_schedule(const config::Config& config, const Registries& registries, std::int64_t max_steps) {
  const std::string& name = config.scheduler.name;
  const std::int64_t length = config::schedule_length(config.scheduler, max_steps);
  return ending(registries.scheduler.get(name).factory({config, Registries::options_of(config, "scheduler", name), registries}, length),
                config.scheduler);
}

Hooks make_hooks(const config::Config& config, const Registries& registries, const std::function<std::unique_ptr<Hook>()>& last) {
  std::vector<std::unique_ptr<Hook>> hooks;
  for (const std::string& name : config.hooks) {
    hooks.push_back(registries.hook.get(name).factory({config, Registries::options_of(config, "hook", name), registries}));
  }
  for (const std::string& name : config.metrics.extra) {
    const PartArgs args{config, Registries::options_of(config, "metric", name), registries};
    hooks.push_back(metric_hook(name, registries.metric.get(name).factory(args), config.metrics.log_interval,
                                static_cast<std::uint64_t>(config.train.seed)));
  }
  if (last) {
    hooks.push_back(last());
  }
  return Hooks(std::move(hooks));
}

std::vector<std::unique_ptr<Sink>> make_sinks(const config::Config& config, const Registries& registries, const fs::path& dir,
                                              std::int64_t completed_steps) {
  std::vector<std::unique_ptr<Sink>> sinks;
  for (const std::string& name : config.metrics.sinks) {
    const PartArgs args{config, Registries::options_of(config, "sink", name), registries};
    sinks.push_back(registries.sink.get(name).factory(args, dir, completed_steps));
  }
  return sinks;
}

std::unique_ptr<TokenSampler> sampler_of(const config::Config& config, const Registries& registries) {
  const std::string& name = config.generate.strategy;
  return registries.sampler.get(name).factory({config, Registries::options_of(config, "sampler", name), registries});
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
