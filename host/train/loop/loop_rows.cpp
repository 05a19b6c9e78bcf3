// The loop's records of its steps.

#include <chrono>
#include <utility>

#include "core/error.h"
#include "core/log.h"
#include "core/text.h"
#include "core/trace.h"
#include "metrics/memory.h"
#include "metrics/names/names.h"
#include "train/loop/loop.h"

namespace kf {

void TrainLoop::keep_time(const StepResult& result, double seconds) {
  wall_.add(WallTime::Cause::data, result.data_seconds);
  wall_.add(result.skipped.empty() ? WallTime::Cause::step : WallTime::Cause::skipped, seconds - result.data_seconds);
  heartbeat_.beat("steps", state_.run.step);
  if (const std::optional<double> median = step_times_.add(seconds)) {
    log::warn("step {} took {} s, {} times the median of those before it ({} s); {} s of them it waited for data", state_.run.step,
              fixed(seconds, 2), fixed(seconds / *median, 1), fixed(*median, 2), fixed(result.data_seconds, 2));
  }
}

void TrainLoop::log_row() {
  fire(Event::log);
  StepRow& logged = row();
  if (!logs(logged.step)) {  // a hook's numbers made it a row
    parts_.throughput.take();
  }
  waited_ = stepped_for_ = 0;
  begin_traffic();
  const Values own = std::exchange(extra_, {});
  logged.extra.insert(logged.extra.end(), own.begin(), own.end());
  const TraceRange range(TraceKind::phase, "metrics");
  parts_.sinks.row(logged);
  if (logged.has_loss) {
    outcome_.loss = logged.loss;
  }
}

/// The record of the last step; made on the first call after it.
StepRow& TrainLoop::row() {
  if (!row_) {
    row_ = make_row(parts_.throughput.rate());
  }
  return *row_;
}

/// Everything but what hooks log.
StepRow TrainLoop::make_row(const Rate& rate) {
  StepRow row;
  static_cast<Means&>(row) = last_;
  row.step = state_.run.step;
  row.has_loss = last_.has_loss();
  row.lr = context_.lr;
  row.tokens = state_.run.tokens;
  row.tokens_per_sec = rate.tokens_per_sec;
  row.mfu = rate.mfu;
  row.memory_bytes = memory_bytes(options_.device);
  row.seconds = seconds();
  row.time = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  row.skipped = state_.run.skipped;
  if (last_.has_loss()) {  // without a forward the model's numbers are those of the step before
    row.extra = parts_.model.metrics();
  }
  row.extra.insert(row.extra.end(), last_.extra.begin(), last_.extra.end());
  add_data_metrics(row);
  add_traffic(row);
  if (options_.metrics.goodput) {
    for (const Values& values : {wall_.row(), step_times_.row()}) {
      row.extra.insert(row.extra.end(), values.begin(), values.end());
    }
  }
  return row;
}

/// What `method` of a hook's context may read: numbers of no step would be made up.
const StepResult& TrainLoop::last_step(const char* method) const {
  KF_CHECK(stepped_, Code::script, "ctx:{}() has nothing to tell before the first step since the run began or went on", method);
  return last_;
}

/// What is told from now on.
void TrainLoop::begin_traffic() {
  traffic_ = total_of(traffic_of(options_.world.all()));
  traffic_step_ = state_.run.step;
}

/// What this rank has sent since the row before, and how long it waited.
void TrainLoop::add_traffic(StepRow& row) const {
  const Group& all = options_.world.all();
  const std::int64_t steps = row.step - traffic_step_;
  if (all.size() == 1 || steps <= 0) {
    return;
  }
  const Traffic since = total_of(traffic_of(all)).since(traffic_);
  const double share = 1.0 / static_cast<double>(steps);
  row.extra.emplace_back(row_key::comm_wait, 1000 * since.waited * share);
  row.extra.emplace_back(row_key::comm_time, 1000 * since.took * share);
  row.extra.emplace_back(row_key::comm_bytes, static_cast<double>(since.all_bytes()) * share);
}

/// Per source of a mixture, under the reference's names; and the share of the time that steps waited for data, where it is worth a look.
void TrainLoop::add_data_metrics(StepRow& row) {
  if (!last_.sources.empty()) {
    const std::vector<std::string> names = parts_.train_data.sources();
    const std::vector<double> passes = steering_.data().passes(parts_.stepper.first_micro(state_.run.step));
    for (std::size_t i = 0; i < names.size(); ++i) {
      const SourceLoss& source = last_.sources[i];
      if (source.counted > 0) {
        row.extra.emplace_back(row_key::of(row_key::source_loss, names[i]), source.ce / static_cast<double>(source.counted));
      }
      row.extra.emplace_back(row_key::of(row_key::source_tokens, names[i]), static_cast<double>(source.tokens));
      row.extra.emplace_back(row_key::of(row_key::source_epochs, names[i]), passes[i]);
    }
  }
  if (waited_ > 0.01 && waited_ > 0.01 * stepped_for_) {
    row.extra.emplace_back(row_key::data_wait, waited_ / stepped_for_);
  }
}

}  // namespace kf
