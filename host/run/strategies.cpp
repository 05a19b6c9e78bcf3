#include "run/strategies.h"

namespace kf {
namespace {

CheckpointStrategy make(const std::string& name, const config::Config& config, const Registries& registries) {
  return registries.ckpt_strategy.get(name).factory({config, Registries::options_of(config, "ckpt_strategy", name), registries});
}

}  // namespace

std::function<bool(std::int64_t)> milestone_rule(const config::Config& config, const Registries& registries) {
  const auto& window = config.checkpoint.dyn_ckpt_window;
  if (!window) {
    return [](std::int64_t) { return false; };
  }
  return [w = *window, due = make(window->strategy, config, registries)](std::int64_t step) {
    return w.start <= step && step <= w.stop && due(w.start, w.stop, step);
  };
}

std::function<bool(std::int64_t)> save_rule(const config::Config& config, const Registries& registries) {
  const auto& window = config.checkpoint.dyn_ckpt_window;
  return [window, milestone = milestone_rule(config, registries), due = make(config.checkpoint.strategy, config, registries),
          last = config.train.max_steps](std::int64_t step) {
    const bool inside = window && window->start <= step && step <= window->stop;
    return inside ? milestone(step) : due(0, last, step);
  };
}

}  // namespace kf
