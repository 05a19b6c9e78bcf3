#pragma once
// One optimizer update: forward and backward over the micro-batches, one division by the global count, clipping, the update.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "data/loader.h"
#include "model/model.h"
#include "optim/optimizer.h"
#include "train/loss.h"

namespace kf {

/// What an update left behind; read from the device once.
struct StepResult {
  double ce = 0;                   // cross entropy (or the chosen loss) over the counted tokens
  double z_loss = 0;               // weighted
  double aux_loss = 0;             // weighted; mean over the positions of all micro-batches
  std::optional<double> mtp_loss;  // weighted; of models with model.mtp_layers
  double grad_norm = 0;            // before clipping
  std::int64_t tokens = 0;         // positions, counted or not
  std::int64_t counted = 0;        // labels that counted
  std::string skipped;             // why no update was made; empty when one was
  double loss() const { return ce + z_loss + aux_loss + mtp_loss.value_or(0); }
};

struct StepperOptions {
  std::int64_t grad_accum_steps = 1;
  double grad_clip_norm = 1;
  double z_loss_weight = 0;
  at::Device device = at::kCPU;
  std::int64_t mtp_layers = 0;
  double mtp_loss_weight = 0;
  std::int64_t max_steps = 0;  // of the run, for rules that follow its progress; 0 = unknown, they stay at their start
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
  /// The weighted loss of multi-token prediction, 0-dim; `ahead` as ForwardContext::ahead.
  at::Tensor mtp_loss(const std::vector<at::Tensor>& ahead, const Batch& batch, const Totals& totals) const;
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
