#pragma once
// A run without training, for tests of saves.

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "checkpoint/manager.h"
#include "support/checkpoints.h"
#include "train/loop/saver.h"
#include "unit/checkpoint/fakes.h"

#include <catch2/catch.hpp>  // after LibTorch, whose CHECK it replaces

namespace kf::test {

inline CheckpointState state_of(std::int64_t step) {
  CheckpointState state;
  state.run = {.step = step, .tokens = step * 100};
  state.data_fingerprint = "files:1";
  state.job = config::Node(config::Table{});
  state.job_toml = "[train]\nmax_steps = 10\n";
  return state;
}

/// A run without training: the weights of step N are all N.
struct FakeRun {
  explicit FakeRun(fs::path dir, std::int64_t keep_last = 3, std::function<bool(std::int64_t)> keep_forever = {})
      : checkpoints({.dir = std::move(dir), .keep_last = keep_last, .keep_forever = std::move(keep_forever)}) {}

  fs::path save(std::int64_t step, const std::string& name = {}) {
    model.fill(static_cast<double>(step));
    optimizer.step(0.5);
    return kf::test::save(checkpoints, state_of(step), model, optimizer, name);
  }
  /// The same by a thread, while the weights move on.
  void save_behind(std::int64_t step) {
    CheckpointWriter writer(checkpoints);
    Saver saver({.behind = true, .keeps_buffers = true}, checkpoints, writer, World());
    model.fill(static_cast<double>(step));
    optimizer.step(0.5);
    saver.begin(state_of(step), model, optimizer);
    model.fill(static_cast<double>(step) + 0.5);
    saver.end();
  }
  /// Step of what `newest` gives, loaded and compared; -1 for nothing.
  std::int64_t newest() {
    const auto path = checkpoints.newest();
    if (!path) {
      return -1;
    }
    const CheckpointState state = kf::test::load(*path, model, optimizer);
    CHECK(model.filled() == static_cast<double>(state.run.step));
    return state.run.step;
  }

  FakeModel model;
  FakeOptimizer optimizer;
  CheckpointManager checkpoints;
};

}  // namespace kf::test
