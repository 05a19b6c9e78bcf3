#pragma once
// One optimizer update: forward and backward over the micro-batches, one division by the global count, clipping, the update.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "config/plan/batch_plan.h"
#include "data/loader/loader.h"
#include "metrics/row.h"
#include "model/model.h"
#include "model/weight_unit.h"
#include "optim/optimizer.h"
#include "parallel/world.h"
#include "train/step/loss.h"
#include "train/step/loss_scale.h"
#include "train/step/source_losses.h"
#include "train/step/update_guard.h"

namespace kf {

class Watch;

/// What an update left behind; read from the device once. In a step without a label that counts no loss and no norm means anything.
struct StepResult : Means {
  Values extra;                     // loss_fn/NAME and mtp_loss, where the step has them
  bool infinite_loss = false;       // of any micro-batch: beside another's NaN the sum does not show it
  std::int64_t tokens = 0;          // positions, counted or not
  std::int64_t counted = 0;         // labels that counted
  double data_seconds = 0;          // waited for batches
  std::vector<SourceLoss> sources;  // where they were asked for, by source of the mixture
  std::string skipped;              // why no update was made; empty when one was
  std::string abort;                // why the run must end here; mostly empty
  bool has_loss() const { return counted > 0; }
};

struct StepperOptions {
  config::BatchPlan batches = 1;  // micro-batches of each update
  double grad_clip_norm = 1;
  double z_loss_weight = 0;
  at::Device device = at::kCPU;
  std::int64_t mtp_layers = 0;
  double mtp_loss_weight = 0;
  std::int64_t max_steps = 0;             // of the run, for rules that follow its progress; 0 = unknown, they stay at their start
  config::TrainConfig guard = {};         // skip_*, on_nan, on_inf
  std::optional<double> loss_scale = {};  // first one, of fp16
  double qk_clip_tau = 0;                 // 0: no QK-clip
  std::int64_t batch_size = 1;            // of the job: what phases change and go back to
  std::int64_t seq_len = 1;
  std::uint64_t seed = 0;  // train.seed: estimates of curvature draw from it
  World world = {};        // ranks that share the update
};

/// Called inside a step, where they are not empty; and what else the caller wants of it.
struct StepCallbacks {
  std::function<void()> micro_end;  // after the backward of each micro-batch
  /// Before the update is judged and clipped, with every gradient of the step in place; may set `skipped`. Gives whether it may have
  /// written into the gradients: their norm is taken again then.
  std::function<bool(StepResult&)> backward_end;
  std::int64_t sources = 0;  // of the mixture: StepResult::sources is wanted; 0: it is not
  Watch* watch = nullptr;    // of a watched step
};

class Stepper {
 public:
  using Callbacks = StepCallbacks;

  Stepper(Model& model, Optimizer& optimizer, const Loss& loss, const StepperOptions& options);

  /// Update number `step` + 1 with learning rate `lr`. Micro-batches weigh by their counted tokens: A of them equal one batch of all.
  /// A batch without counted tokens, a loss or norm that is not finite, a spike or an overflow of fp16 changes nothing and says so in
  /// `skipped`; `abort` says that the run must not go on.
  StepResult run(Loader& loader, std::int64_t step, double lr, const Callbacks& callbacks = {});

  /// Of the gradients as they are now, before clipping; waits for the device.
  double gradient_norm() const;

  /// What a resumed run must know of the updates before: recent losses and norms, the loss scale.
  config::Node state() const;
  void load(const config::Node& state);

  /// Number of the first micro-batch of the update after `step` completed ones.
  std::int64_t first_micro(std::int64_t step) const { return options_.batches.first_micro(step); }
  std::int64_t job_batch_size() const { return options_.batch_size; }
  std::int64_t job_seq_len() const { return options_.seq_len; }

  /// From the next update on: another loss (null: the one given at first), another weight of the z-loss, a factor of the model's own terms.
  void use_loss(const Loss* loss) { loss_ = loss != nullptr ? loss : &job_loss_; }
  void set_z_loss_weight(double weight) { options_.z_loss_weight = weight; }
  void set_aux_loss_factor(double factor) { aux_factor_ = factor; }

 private:
  struct Totals;
  Totals count(const std::vector<Batch>& batches) const;
  void backward(const std::vector<Batch>& batches, std::int64_t step, const Callbacks& callbacks, Totals& totals);
  void micro_step(const Batch& batch, std::int64_t step, std::int64_t micro, Totals& totals);
  /// `context` has its step and micro-batch; the rest comes from the batch.
  LossParts forward(const Batch& batch, ForwardContext& context, const Totals& totals);
  /// Another forward and two backwards of every micro-batch, at the weights that the gradients are of.
  void estimate_curvature(const std::vector<Batch>& batches, std::int64_t step, const Totals& totals);
  LossParts losses_of(const Batch& batch, ForwardContext& context, const Totals& totals);
  std::vector<Batch> fetch(Loader& loader, std::int64_t step, StepResult& result) const;
  /// The weighted loss of multi-token prediction, 0-dim; `ahead` as ForwardContext::ahead.
  at::Tensor mtp_loss(const std::vector<at::Tensor>& ahead, const Batch& batch, const Totals& totals) const;
  void add_counts(Totals& totals) const;
  std::int64_t micro_of_all(std::int64_t micro) const;
  void reduce_gradients() const;
  void agree_on_gradients(bool& changed, StepResult& result) const;
  at::Tensor norm_of_gradients() const;
  void unscale() const;
  bool show_gradients(const Callbacks& callbacks, StepResult& result) const;
  void read(const Totals& totals, const at::Tensor& norm, StepResult& result) const;
  void judge(std::int64_t step, bool overflowed, StepResult& result);
  bool hides_infinity(const StepResult& result) const;
  void update(double lr, const at::Tensor& norm);
  void end_step(std::int64_t step, bool updated);
  bool looks_ahead() const { return options_.mtp_layers > 0 && options_.mtp_loss_weight > 0; }
  double scale() const { return loss_scale_ ? loss_scale_->value() : 1; }

  Model& model_;
  Optimizer& optimizer_;
  const Loss& job_loss_;
  const Loss* loss_;
  StepperOptions options_;
  double aux_factor_ = 1;
  ParameterList parameters_;
  std::vector<std::shared_ptr<WeightUnit>> units_;
  UpdateGuard guard_;
  std::optional<LossScale> loss_scale_;
  std::vector<at::Tensor> largest_scores_;  // of this step, where QK-clip wants them
  SourceLosses source_losses_;
  std::function<void(const std::string&, const at::Tensor&)> observe_;  // ForwardContext::observe of this step
};

/// A batch on `device`.
Batch to_device(const Batch& batch, at::Device device);

}  // namespace kf
