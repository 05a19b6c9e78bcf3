// Steps whose numbers the host reads while later ones are under way.

#include <utility>

#include "core/error.h"
#include "core/log.h"
#include "train/loop/loop.h"

namespace kf {

/// Whether nobody looks at the update after `step` completed ones but the log: what hooks, evaluations, saves, phases and watches see or
/// change is the state of their step.
bool TrainLoop::may_run_ahead(std::int64_t step) {
  if (options_.run_ahead == 0 || !stepped_) {
    return false;
  }
  const std::int64_t next = step + 1;
  for (const Event event : {Event::step_begin, Event::micro_end, Event::backward_end, Event::step_end, Event::log}) {
    if (parts_.hooks.wants(event, step) || parts_.hooks.wants(event, next)) {
      return false;
    }
  }
  const bool evaluates = !parts_.eval_sets.empty() && next % options_.eval_interval == 0;
  const bool reads_sources = logs(next) && !parts_.train_data.sources().empty();
  const bool last = next == options_.max_steps || parts_.stepper.first_micro(next + 1) > steering_.end();
  const bool saves = save_over_ || !controls_.saves.empty() || save_due(next);
  return !evaluates && !reads_sources && !last && !controls_.eval && !saves && !watch_.due(next) && !histograms_.due(next) &&
         steering_.is_steady() && said_.empty();
}

void TrainLoop::run_ahead(std::int64_t step) {
  const double lr = rate(step);
  if (ahead_.empty()) {
    last_at_ = parts_.throughput.seconds();
  }
  Launched launched = parts_.stepper.launch(steering_.data(), step, lr);
  ++state_.run.step;
  count_tokens(launched.result);
  ahead_.push_back({std::move(launched), state_.run, lr, parts_.throughput.seconds()});
  agree_on_requests();
  save_over_ = saver_.is_under_way() && saver_.is_over();
  while (static_cast<std::int64_t>(ahead_.size()) > options_.run_ahead) {
    settle_one();
  }
}

/// Reads the oldest one. What follows is as behind any other step, with the counters of that one. Its time is that between launches: when
/// the device was done with it nobody has seen, and over several steps both are the same.
void TrainLoop::settle_one() {
  Ahead oldest = std::move(ahead_.front());
  ahead_.pop_front();
  const StepResult result = parts_.stepper.settle(std::move(oldest.launched));
  const double seconds = oldest.at - std::exchange(last_at_, oldest.at);
  waited_ += result.data_seconds;
  stepped_for_ += seconds;
  state_.run.skipped += result.skipped.empty() ? 0 : 1;
  oldest.run.skipped = state_.run.skipped;
  const RunState newest = std::exchange(state_.run, oldest.run);
  context_.lr = oldest.lr;
  keep_time(result, seconds);
  last_ = result;
  parts_.throughput.add(result.tokens);
  if (!result.skipped.empty()) {
    log::warn("step {}: no update, {}", state_.run.step, result.skipped);
  }
  keep_incident(result);
  row_.reset();
  if (logs(state_.run.step) || !result.abort.empty()) {
    row_ = make_row(parts_.throughput.take_at(oldest.at));
    log_row();
  }
  if (!result.abort.empty()) {
    ahead_.clear();  // the run ends here
    fail(Code::other, "{}", result.abort);
  }
  parts_.sinks.step_over(state_.run.step);
  state_.run = newest;
}

/// Strategies may be scripts that count: each step is asked about once.
bool TrainLoop::save_due(std::int64_t step) {
  if (std::exchange(asked_step_, step) != step) {
    asked_due_ = options_.save_due(step);
  }
  return asked_due_;
}

void TrainLoop::settle_all() {
  while (!ahead_.empty()) {
    settle_one();
  }
}

}  // namespace kf
