#pragma once
// What steers a run besides its schedule: phases, and what hooks asked for. All of it is in checkpoints.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/loader/loader.h"
#include "parallel/world.h"
#include "train/loop/controls.h"
#include "train/loop/freezer.h"
#include "train/loop/phase.h"
#include "train/step/stepper.h"

namespace kf {

class Steering {
 public:
  /// Everything outlives it.
  Steering(Model& model, Stepper& stepper, Loader& loader, Phases phases, const World& world = {});
  ~Steering();
  Steering(const Steering&) = delete;
  Steering& operator=(const Steering&) = delete;

  /// The training data, without what roll-backs left out.
  Loader& data();
  /// The running phase's name; "" without one.
  std::string phase() const { return phases_.current() != nullptr ? phases_.current()->name : ""; }
  /// Factor of the learning rate in the update after `step` completed ones.
  double lr_scale(std::int64_t step) const { return lr_scale_ * phases_.lr_scale(step); }
  double epoch(std::int64_t step) const;
  /// Micro-batches before the data end.
  std::int64_t end() const;

  /// Whether no phase may begin behind the next update.
  bool is_steady() const { return phases_.current() == nullptr; }

  /// Puts the first phase in force: call it once, before the first update of a fresh run.
  void begin();
  /// Throws what `apply` would.
  void check(const Controls& controls) const { freezer_.check(controls.freezing); }
  /// The lasting requests, in force from the update after `step` completed ones on.
  void apply(const Controls& controls, std::int64_t step);
  /// Goes on to the next phase where the running one is over; whether it did.
  bool advance(HookContext& context, bool ask);
  /// Back from step `from` to step `to`, of which `saved` is the state: in its phase, but with the data that would have come next. What
  /// hooks asked for stays.
  void roll_back(const config::Node& saved, std::int64_t from, std::int64_t to);

  config::Node state() const;
  /// `state` as it was after `step` completed updates.
  void load(const config::Node& state, std::int64_t step);

 private:
  class Data;
  /// A change of the data as checkpoints keep it.
  struct Change {
    std::int64_t micro = 0;
    DataChange what;
  };
  void enter(std::int64_t step);
  void change_data(std::int64_t micro, const DataChange& change);
  void set_loss_weight(const std::string& name, double weight);

  Stepper& stepper_;
  World world_;
  std::unique_ptr<Data> data_;
  Phases phases_;
  Freezer freezer_;
  double lr_scale_ = 1;
  std::map<std::string, double> loss_weights_;  // as hooks set them
  DataChange in_force_;                         // of the phase
  std::vector<Change> changes_;
};

/// Throws Code::config and Code::data for phases whose name patterns match nothing, or whose data cannot be.
void check_phases(const Phases& phases, Model& model, const Loader& loader);

}  // namespace kf
