#include "train/loop/saver.h"

#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

#include "checkpoint/checkpoint_error.h"
#include "checkpoint/own_pieces.h"
#include "checkpoint/together.h"
#include "core/error.h"
#include "core/log.h"
#include "core/running.h"
#include "core/trace.h"
#include "train/loop/agree.h"

namespace kf {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

template <class T>
bool is_ready(const std::future<T>& future) {
  return future.wait_for(std::chrono::seconds(0)) != std::future_status::timeout;
}

}  // namespace

Saver::Saver(SaverOptions options, CheckpointManager& checkpoints, CheckpointWriter& writer, const World& world)
    : options_(options), checkpoints_(checkpoints), writer_(writer), world_(world), copies_(options.keeps_buffers), begun_(Clock::now()) {
  if (world.leads() && !checkpoints.options().mirror.empty()) {
    mirror_.emplace(checkpoints.options());
  }
}

Saver::~Saver() {
  if (!flight_.valid() || !options_.behind) {
    return;
  }
  try {
    flight_.get();
    log::info("{} is complete", what());
  } catch (const std::exception& e) {
    log::error("{} failed: {}", what(), e.what());
  }
}

std::string Saver::what() const {
  return name_.empty() ? format("the save of step {}", under_way_) : format("the save '{}' of step {}", name_, under_way_);
}

StagedSave Saver::stage(const CheckpointState& state, Model& model, Optimizer& optimizer) {
  Snapshot snapshot = writer_.snapshot(state, model, optimizer);
  keep_own_pieces(snapshot, model, world_);
  StagedSave staged = CheckpointWriter::stage(std::move(snapshot));
  if (options_.behind) {
    copies_.take(staged);
  }
  if (world_.leads() && name_.empty()) {
    staged.outdated = checkpoints_.outdated_by(state);
    if (mirror_) {  // what is still to be copied goes with a later save
      const std::vector<std::int64_t> needed = mirror_->needed();
      std::erase_if(staged.outdated, [&](std::int64_t step) { return std::find(needed.begin(), needed.end(), step) != needed.end(); });
    }
  }
  return staged;
}

bool Saver::prepare(std::int64_t step, const std::string& name, const std::function<void()>& check) {
  KF_CHECK(!flight_.valid(), Code::other, "{} is still under way", what());
  under_way_ = step;
  name_ = name;
  began_ = Clock::now();
  if (name.empty()) {
    begun_ = began_;
  }
  try {
    together(world_.files(), [&] {
      return as_checkpoint_error([&] {
        if (check) {
          check();
        }
        return std::string();
      });
    });
  } catch (const Error& e) {
    judge(e);
    return false;
  }
  return true;
}

void Saver::begin(const CheckpointState& state, Model& model, Optimizer& optimizer) {
  const Running running("the save of a checkpoint", name_.empty() ? nullptr : name_.c_str(), under_way_);
  const TraceRange range(TraceKind::phase, "save");
  if (name_.empty()) {
    step_ = under_way_;
  }
  const WithAverages averages(optimizer);
  auto write = [this, staged = stage(state, model, optimizer), name = name_, began = began_] {
    const TraceRange range(TraceKind::phase, "writing a checkpoint");
    Written out{writer_.write(staged, world_.files(), name)};
    out.seconds = seconds_since(began);
    return out;
  };
  if (options_.behind) {
    flight_ = std::async(std::launch::async, std::move(write));
  } else {  // now, while the tensors are what they are; what fails comes out of `end`, too
    std::packaged_task<Written()> task(std::move(write));
    flight_ = task.get_future();
    task();
  }
}

bool Saver::is_over() const { return !flight_.valid() || !any_of(!is_ready(flight_), world_.all()); }

std::optional<Saver::Saved> Saver::end() {
  if (!flight_.valid()) {
    return std::nullopt;
  }
  const Running running("the save of a checkpoint", name_.empty() ? nullptr : name_.c_str(), under_way_);
  const TraceRange range(TraceKind::phase, "save");
  try {
    const Written written = flight_.get();
    seconds_ = written.seconds;
    return Saved{under_way_, name_, written.path};
  } catch (const Error& e) {
    judge(e);
    return std::nullopt;
  }
}

void Saver::copy(const fs::path& checkpoint) {
  if (mirror_) {
    mirror_->add(checkpoint);
  }
}

void Saver::catch_up(const fs::path& checkpoint) {
  if (checkpoint.parent_path() == checkpoints_.options().dir) {
    copy(checkpoint);
  }
}

void Saver::await_copies() {
  if (mirror_) {
    const Running running("the copy of a checkpoint to checkpoint.mirror");
    mirror_->wait();
    checkpoints_.tidy(step_);
  }
}

/// Returns where the run goes on after this failure. The earlier checkpoints are as they were.
void Saver::judge(const Error& e) {
  if (e.code() != Code::checkpoint) {
    throw e;
  }
  if (name_.empty()) {
    step_ = -1;
  }
  KF_CHECK(!options_.stops_on_error, Code::checkpoint,
           "{} failed: {} (the earlier checkpoints are untouched; checkpoint.on_error = 'warn' goes on without it)", what(), e.what());
  log::warn("{} failed: {}; the run goes on (checkpoint.on_error), the earlier checkpoints are untouched", what(), e.what());
}

bool Saver::is_due_by_clock() const {
  constexpr double kSeconds = 60;
  return options_.interval_minutes > 0 && seconds_since(begun_) >= options_.interval_minutes * kSeconds;
}

}  // namespace kf
