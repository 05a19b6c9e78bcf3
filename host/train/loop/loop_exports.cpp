// Folders for other programs, made of checkpoints while a run is on.

#include "checkpoint/retention.h"
#include "core/log.h"
#include "core/running.h"
#include "core/trace.h"
#include "train/loop/loop.h"

namespace kf {

bool TrainLoop::export_due() const {
  return options_.export_interval > 0 && state_.run.step > 0 && state_.run.step % options_.export_interval == 0;
}

/// Of this step: exports/step_N where one is due, and what hooks have asked for ("" is the same). Each is made of a checkpoint on disk, so
/// this step is saved where it is not yet; the leader reads, and nobody holds the whole model. All ranks call it.
void TrainLoop::export_models(const std::vector<std::string>& asked) {
  std::vector<std::string> names = asked;
  if (export_due()) {
    names.emplace_back();
  }
  if (names.empty() || !options_.export_checkpoint || !options_.writes_checkpoints) {
    return;
  }
  if (saver_.step() != state_.run.step) {
    save();
  }
  end_save();
  if (!options_.world.leads()) {
    return;
  }
  if (fs::path(outcome_.checkpoint).filename() != step_folder(state_.run.step)) {
    log::warn("step {}: the model is not exported, since its checkpoint could not be saved", state_.run.step);
    return;
  }
  parts_.throughput.pause();
  heartbeat_.now("export", state_.run.step);
  const Running running("the export of a model", nullptr, state_.run.step);
  const TraceRange range(TraceKind::phase, "export");
  const std::string usual = "exports/step_" + std::to_string(state_.run.step);
  for (const std::string& name : names) {
    options_.export_checkpoint(outcome_.checkpoint, options_.run_dir / (name.empty() ? usual : name));  // an absolute name stays
  }
  parts_.throughput.resume();
}

}  // namespace kf
