// Saves: when they begin, and when the run learns what became of them.

#include "core/error.h"
#include "core/log.h"
#include "core/source_watch.h"
#include "core/text.h"
#include "train/loop/agree.h"
#include "train/loop/loop.h"

namespace kf {

/// Begins to save the state as it is; the one before has ended then. False where there is no time for it.
bool TrainLoop::save(const std::string& name) {
  if (!options_.writes_checkpoints) {
    return false;
  }
  verify_sources();  // what was learned from data that changed under the run is not saved
  parts_.throughput.pause();
  await_earlier_save();
  const bool fits = save_fits_in_time();
  const double begin = parts_.throughput.seconds();
  if (fits) {
    heartbeat_.now("checkpoint", state_.run.step);
  }
  if (fits && saver_.prepare(state_.run.step, name, options_.before_save)) {
    state_.finished = finished();
    state_.values = values();
    parts_.sinks.before_save();
    saver_.begin(state_, parts_.model, parts_.optimizer);
    wall_.add(WallTime::Cause::save, parts_.throughput.seconds() - begin);
    if (!saver_.behind()) {
      end_save();
    }
  }
  parts_.throughput.resume();
  return fits;
}

void TrainLoop::await_earlier_save() {
  const double waited = end_save();
  constexpr double kWorthALine = 0.05;  // seconds
  if (saver_.behind() && waited > kWorthALine) {
    log::warn("step {}: waited {} s for the end of the last save, which took {} s: the disk is slower than saves follow each other",
              state_.run.step, fixed(waited, 2), fixed(saver_.seconds(), 2));
  }
}

/// Learns what became of the save that is under way, if there is one. Gives the seconds that it waited for that.
double TrainLoop::end_save() {
  save_over_ = false;
  const double begin = parts_.throughput.seconds();
  const std::optional<Saver::Saved> saved = saver_.end();
  const double waited = parts_.throughput.seconds() - begin;
  wall_.add(WallTime::Cause::save, waited);
  if (saved) {
    if (saved->name.empty()) {
      outcome_.checkpoint = saved->path.string();  // a named one beside it is no place to go on from
    }
    context_.path = saved->path.string();
    parts_.sinks.saved(saved->step, saved->path);
    fire(Event::checkpoint_save);
    saver_.copy(saved->path);  // with what hooks have put into it
  }
  return waited;
}

/// The end of the run: its state is saved, whatever policies say of other steps, and nothing is under way any more.
void TrainLoop::save_last() {
  end_save();
  if (saver_.step() == state_.run.step || (complete() && !options_.save_at_end) || !save()) {
    return;
  }
  end_save();
  KF_CHECK(saver_.step() == state_.run.step, Code::checkpoint,
           "the run is at its end, step {}, and its state could not be saved (see the log); the newest checkpoint of this process is {}",
           state_.run.step, outcome_.checkpoint.empty() ? "none" : outcome_.checkpoint);
}

/// After a signal there is only so much time (train.shutdown_timeout_sec), and a save that cannot end in it would leave nothing.
bool TrainLoop::save_fits_in_time() {
  if (!told_to_stop_) {
    return true;
  }
  const double left = inbox_->seconds_left();
  const bool fits = !any_of(saver_.seconds() > left, options_.world.all());
  if (!fits) {
    log::warn("step {} is not saved: the last save took {} s, and {} s are left of train.shutdown_timeout_sec", state_.run.step,
              fixed(saver_.seconds(), 2), fixed(left, 2));
  }
  return fits;
}

}  // namespace kf
