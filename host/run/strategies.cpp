#include "run/strategies.h"

#include <algorithm>

namespace kf {
namespace {

using Rule = std::function<bool(std::int64_t)>;

/// The first rule that is not over says.
bool is_kept(const config::List<config::KeepRule>& rules, std::int64_t step) {
  const auto rule = std::find_if(rules.begin(), rules.end(), [&](const config::KeepRule& one) { return !one.until || step <= *one.until; });
  return step > 0 && rule != rules.end() && step % rule->every == 0;
}

Rule window_rule(const config::Config& config, const Registries& registries) {
  const auto& window = config.checkpoint.dyn_ckpt_window;
  if (!window) {
    return [](std::int64_t) { return false; };
  }
  return [w = *window, due = make_part(registries.ckpt_strategy, window->strategy, config, registries)](std::int64_t step) {
    return w.start <= step && step <= w.stop && due(w.start, w.stop, step);
  };
}

}  // namespace

Rule milestone_rule(const config::Config& config, const Registries& registries) {
  return [window = window_rule(config, registries), keep = config.checkpoint.keep](std::int64_t step) {
    return is_kept(keep, step) || window(step);
  };
}

Rule save_rule(const config::Config& config, const Registries& registries) {
  const auto& window = config.checkpoint.dyn_ckpt_window;
  return [window, keep = config.checkpoint.keep, milestone = window_rule(config, registries),
          due = make_part(registries.ckpt_strategy, config.checkpoint.strategy, config, registries),
          last = config.train.max_steps](std::int64_t step) {
    const bool inside = window && window->start <= step && step <= window->stop;
    const bool asked = inside ? milestone(step) : due(0, last, step);  // scripts that count are asked about each step
    return asked || is_kept(keep, step);
  };
}

CheckpointOptions retention_of(const config::Config& config, const Registries& registries) {
  CheckpointOptions out;
  out.keep_last = config.checkpoint.keep_last_n;
  out.keep_forever = milestone_rule(config, registries);
  out.keep_best = config.checkpoint.best_k;
  out.best_metric = config.checkpoint.best_metric.substr(std::string_view("eval.").size());
  out.best_is_largest = config.checkpoint.best_mode == "max";
  return out;
}

}  // namespace kf
