#include "train/loop/phase.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace kf {
namespace {

/// The latest end of a phase that begins at `start`.
std::int64_t end_of(const Phase& phase, std::int64_t start, std::int64_t max_steps) {
  const std::int64_t by_length = phase.steps ? start + *phase.steps : max_steps;
  return std::min(by_length, phase.until_step.value_or(max_steps));
}

bool may_end_early(const Phase& phase) { return phase.rules && phase.rules->has_stop_when(); }

}  // namespace

Phases::Phases(std::vector<Phase> phases, std::int64_t max_steps) : phases_(std::move(phases)), max_steps_(max_steps) {
  std::int64_t start = 0;
  for (std::size_t i = 0; i < phases_.size(); ++i) {
    KF_CHECK(start < max_steps, Code::config,
             "phases[{}] ('{}') never begins: the phases before it last until step {}, and the run has {} steps; shorten them, or raise "
             "train.max_steps",
             i, phases_[i].name, start, max_steps);
    const std::int64_t end = end_of(phases_[i], start, max_steps);
    KF_CHECK(end > start, Code::config, "phases[{}] ('{}') ends at step {}, where it begins; raise its until_step", i, phases_[i].name,
             end);
    start = may_end_early(phases_[i]) ? start + 1 : end;
  }
}

std::int64_t Phases::end() const { return end_of(phases_[index_], start_, max_steps_); }

bool Phases::over(HookContext& context, bool ask) const {
  const Phase* const phase = current();
  if (phase == nullptr) {
    return false;
  }
  const std::int64_t step = context.state.step;
  return step >= end() || (ask && step > start_ && phase->rules && phase->rules->stop_when(context));
}

void Phases::advance(std::int64_t step) {
  ++index_;
  start_ = step;
}

double Phases::lr_scale(std::int64_t step) const {
  const Phase* const phase = current();
  if (phase == nullptr) {
    return 1;
  }
  const double t = static_cast<double>(step - start_) / static_cast<double>(std::max<std::int64_t>(1, end() - start_));
  const std::optional<double> own = phase->rules ? phase->rules->lr_scale(t) : std::nullopt;
  return own.value_or(phase->lr_scale);
}

config::Node Phases::state() const {
  config::Table out;
  out["index"] = config::Node(static_cast<std::int64_t>(index_));
  out["start"] = config::Node(start_);
  out["name"] = config::Node(current() != nullptr ? current()->name : std::string());
  return config::Node(std::move(out));
}

void Phases::load(const config::Node& state, std::int64_t step) {
  const config::Table* const table = state.table();
  const config::Node* const index = table != nullptr ? table->find("index") : nullptr;
  const config::Node* const start = table != nullptr ? table->find("start") : nullptr;
  const config::Node* const name = table != nullptr ? table->find("name") : nullptr;
  KF_CHECK(index != nullptr && start != nullptr && name != nullptr, Code::checkpoint, "the checkpoint does not say which phase was on");
  index_ = static_cast<std::size_t>(std::get<std::int64_t>(index->value));
  start_ = std::get<std::int64_t>(start->value);
  const std::string now = current() != nullptr ? current()->name : "";
  KF_CHECK(
      std::get<std::string>(name->value) == now, Code::checkpoint,
      "the checkpoint was saved in phase {} ('{}'), which is '{}' in this job; leave the phases up to the running one as they were, or "
      "start over with run.fresh = true",
      index_, std::get<std::string>(name->value), now);
  while (current() != nullptr && current()->start_step.value_or(step) > step) {  // the job has moved it behind this step
    --index_;
    start_ = current()->start_step.value_or(0);
  }
}

}  // namespace kf
