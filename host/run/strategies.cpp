#include "run/strategies.h"

namespace kf {

std::function<bool(std::int64_t)> milestone_rule(const config::Config& config, const Registries& registries) {
  const auto& window = config.checkpoint.dyn_ckpt_window;
  if (!window) {
    return [](std::int64_t) { return false; };
  }
  return [w = *window, due = make_part(registries.ckpt_strategy, window->strategy, config, registries)](std::int64_t step) {
    return w.start <= step && step <= w.stop && due(w.start, w.stop, step);
  };
}

std::function<bool(std::int64_t)> save_rule(const config::Config& config, const Registries& registries) {
  const auto& window = config.checkpoint.dyn_ckpt_window;
  return [window, milestone = milestone_rule(config, registries),
          due = make_part(registries.ckpt_strategy, config.checkpoint.strategy, config, registries),
          last = config.train.max_steps](std::int64_t step) {
    const bool inside = window && window->start <= step && step <= window->stop;
    return inside ? milestone(step) : due(0, last, step);
  };
}

}  // namespace kf
