#pragma once
// Phases: stretches of a run with settings of their own, one after the other. After the last one the job's own settings hold.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/tree/node.h"
#include "data/loader/loader.h"
#include "train/loop/hook.h"
#include "train/step/loss.h"

namespace kf {

/// What a registered phase, or one with functions, adds to its entry in `phases`.
class PhaseRules {
 public:
  virtual ~PhaseRules() = default;
  /// Keys of the entry that nobody knew before the part was made, as those that a factory in Lua gives; the entry's own keys win.
  virtual config::Table entry() const { return {}; }
  /// Whether the phase ends before its length; asked before each update.
  virtual bool stop_when(HookContext& /*context*/) { return false; }
  virtual bool has_stop_when() const { return false; }
  /// Factor of the learning rate at `t` from 0 (its first update) towards 1 (its end); nothing: the entry's number.
  virtual std::optional<double> lr_scale(double /*t*/) { return std::nullopt; }
};

/// One phase, resolved.
struct Phase {
  std::string name;
  std::optional<std::int64_t> steps;       // length, or cap beside a stop_when
  std::optional<std::int64_t> until_step;  // the same as an absolute step
  std::optional<std::int64_t> start_step;  // where it begins by the job alone, as data.phases do, whatever a checkpoint says
  double lr_scale = 1;
  DataChange data;  // against the job's own
  std::vector<std::string> freeze;
  std::shared_ptr<Loss> loss;  // null: the job's own
  std::shared_ptr<PhaseRules> rules;
};

/// Which phase is on. Its state is in checkpoints, so that a run goes on in the middle of one.
class Phases {
 public:
  Phases() = default;
  /// Throws Code::config for a phase that could never begin.
  Phases(std::vector<Phase> phases, std::int64_t max_steps);

  bool empty() const { return phases_.empty(); }
  const std::vector<Phase>& all() const { return phases_; }
  /// The running one; null without phases, and after the last.
  const Phase* current() const { return index_ < phases_.size() ? &phases_[index_] : nullptr; }
  /// Whether the running phase is over before the update that follows `context.state.step` completed ones. `ask` its stop_when, too: once a
  /// step, so not again where a run goes on.
  bool over(HookContext& context, bool ask = true) const;
  /// The next one begins at `step`.
  void advance(std::int64_t step);
  /// Factor of the learning rate in the update after `step` completed ones.
  double lr_scale(std::int64_t step) const;

  config::Node state() const;
  /// `state` as it was after `step` completed updates. Throws Code::checkpoint when the phases are not those that it is of.
  void load(const config::Node& state, std::int64_t step);

 private:
  std::int64_t end() const;  // first step behind the running phase, at the latest

  std::vector<Phase> phases_;
  std::int64_t max_steps_ = 0;
  std::size_t index_ = 0;
  std::int64_t start_ = 0;  // step at which the running one began
};

}  // namespace kf
