#pragma once
// One update under the magnifying glass: which number of it is the first that is not finite.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/model.h"
#include "model/observe.h"
#include "train/step/stepper.h"

namespace kf {

/// Watches what every layer gives in the update with a given number, and the gradients of every weight. Costs passes over all of these.
class Probe {
 public:
  /// `step`: number of the update, from 1.
  explicit Probe(std::int64_t step) : step_(step) {}

  std::int64_t step() const { return step_; }
  /// Before that update: looks at the weights and has `callbacks` tell it of the rest.
  void join(Stepper::Callbacks& callbacks, Model& model);
  /// Behind it.
  void end(const StepResult& result);

  /// Finite numbers of a tensor alone count in `largest` and `rms`.
  struct Numbers {
    std::vector<std::int64_t> shape;
    std::int64_t nan = 0, infinite = 0;
    double largest = 0;  // magnitude
    double rms = 0;
    bool finite() const { return nan == 0 && infinite == 0; }
  };
  struct Seen {
    std::string name;  // of a layer, or of a weight
    std::int64_t micro = 0;
    Numbers numbers;
    bool finite_input = true;  // of a layer
  };
  /// A table of what was seen, and where the first number stands that is not finite, as text.
  std::string report() const;
  /// Whether there was such a number.
  bool found() const;
  /// Whether the run came so far.
  bool ended() const { return ended_; }
  /// By name, as incidents keep them, of the weights before the update.
  const std::map<std::string, std::string>& weights() const { return digests_; }

 private:
  void look_at_gradients(Model& model, bool behind_hook);
  std::string verdict() const;

  std::int64_t step_;
  std::int64_t micro_ = 0;
  std::map<std::string, std::string> digests_;
  std::vector<std::unique_ptr<Observation>> observations_;
  std::vector<Seen> weights_seen_, layers_, gradients_;
  bool by_hook_ = false;  // gradients were finite before the hooks saw them
  StepResult result_;
  bool ended_ = false;
};

}  // namespace kf
