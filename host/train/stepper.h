#pragma once
// One optimizer update: forward and backward over the micro-batches, one division by the global count, clipping, the update.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>

#include "data/loader.h"
#include "model/model.h"
#include "optim/optimizer.h"
#include "train/loss.h"

namespace kf {

/// What an update left behind; read from the device once.
struct StepResult {
  double ce = 0;             // cross entropy (or the chosen loss) over the counted tokens
  double z_loss = 0;         // weighted
  double aux_loss = 0;       // weighted; mean over the micro-batches
  double grad_norm = 0;      // before clipping
  std::int64_t tokens = 0;   // positions, counted or not
  std::int64_t counted = 0;  // labels that counted
  std::string skipped;       // why no update was made; empty when one was
  double loss() const { return ce + z_loss + aux_loss; }
};

struct StepperOptions {
  std::int64_t grad_accum_steps = 1;
  double grad_clip_norm = 1;
  double z_loss_weight = 0;
  at::Device device = at::kCPU;
};

class Stepper {
 public:
  /// Called inside a step; either may be empty.
  struct Callbacks {
    std::function<void()> micro_end;                      // after the backward of each micro-batch
    std::function<void(const StepResult&)> backward_end;  // before clipping, with every gradient of the step in place
  };

  Stepper(Model& model, Optimizer& optimizer, const Loss& loss, const StepperOptions& options);

  /// Update number `step` + 1 with learning rate `lr`. Micro-batches weigh by their counted tokens: A of them equal one batch of all.
  /// A batch without counted tokens, or a loss or norm that is not finite, changes nothing and says so in `skipped`.
  StepResult run(Loader& loader, std::int64_t step, double lr, const Callbacks& callbacks = {});

 private:
  struct Totals;
  void micro_step(const Batch& batch, std::int64_t step, std::int64_t micro, Totals& totals);

  Model& model_;
  Optimizer& optimizer_;
  const Loss& loss_;
  StepperOptions options_;
  ParameterList parameters_;
};

/// A batch on `device`.
Batch to_device(const Batch& batch, at::Device device);

}  // namespace kf
