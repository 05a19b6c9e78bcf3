#pragma once
// One optimizer update: forward and backward over the micro-batches, one division by the global count, clipping, the update.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/plan/batch_plan.h"
#include "data/loader/loader.h"
#include "metrics/row.h"
#include "model/model.h"
#include "model/weight_unit.h"
#include "optim/optimizer.h"
#include "parallel/sequence_cut.h"
#include "parallel/world.h"
#include "train/step/engine.h"
#include "train/step/loss_scale.h"
#include "train/step/objective.h"
#include "train/step/source_losses.h"
#include "train/step/update_guard.h"
#include "train/step/verdict.h"

namespace c10 {
struct Event;
}

namespace kf {

class Diloco;
class Watch;
class WeightHistograms;

/// What an update left behind; read from the device once. In a step without a label that counts no loss and no norm means anything.
struct StepResult : Means {
  Values extra;                     // loss_fn/NAME and mtp_loss, where the step has them
  bool infinite_loss = false;       // of any micro-batch: beside another's NaN the sum does not show it
  std::int64_t tokens = 0;          // positions, counted or not
  std::int64_t counted = 0;         // labels that counted
  double data_seconds = 0;          // waited for batches
  std::vector<SourceLoss> sources;  // where they were asked for, by source of the mixture
  bool not_finite = false;          // its loss or its gradient, other than by an overflow of fp16 that its scale takes care of
  std::string skipped;              // why no update was made; empty when one was
  std::string abort;                // why the run must end here; mostly empty
  bool has_loss() const { return counted > 0; }
};

/// An update whose numbers are not known yet.
struct Launched {
  std::int64_t step = 0;              // completed updates before it
  StepResult result;                  // what the host knows of it
  std::vector<Term> terms;            // names of the numbers
  at::Tensor numbers;                 // Stepper's, and the verdict, on their way to host memory; undefined where there was nothing to do
  std::shared_ptr<c10::Event> there;  // when they have arrived; null on a CPU
};

struct StepperOptions {
  config::BatchPlan batches = 1;  // micro-batches of each update
  double grad_clip_norm = 1;
  at::Device device = at::kCPU;
  std::int64_t max_steps = 0;             // of the run, for rules that follow its progress; 0 = unknown, they stay at their start
  config::TrainConfig guard = {};         // skip_*, on_nan, on_inf
  std::optional<double> loss_scale = {};  // first one, of fp16
  double qk_clip_tau = 0;                 // 0: no QK-clip
  std::int64_t batch_size = 1;            // of the job: what phases change and go back to
  std::int64_t seq_len = 1;
  std::uint64_t seed = 0;  // train.seed: estimates of curvature draw from it
  World world = {};        // ranks that share the update
  SequenceOrder cp_order = SequenceOrder::zigzag;
  /// Among the ranks that draw apart, dropout for one; empty: that of drawing_share(world). Workers share no update, and draw apart all the
  /// same: this is then their place among all ranks of the run.
  std::optional<Share> share = {};
  Diloco* outer = nullptr;  // the optimizer, where workers train apart; `world` is a worker's then
};

/// Called inside a step, where they are not empty; and what else the caller wants of it.
struct StepCallbacks {
  std::function<void()> micro_end;  // after the backward of each micro-batch
  /// Before the update is judged and clipped, with every gradient of the step in place; may set `skipped`. Gives whether it may have
  /// written into the gradients: their norm is taken again then.
  std::function<bool(StepResult&)> backward_end;
  std::int64_t sources = 0;                // of the mixture: StepResult::sources is wanted; 0: it is not
  Watch* watch = nullptr;                  // of a watched step
  WeightHistograms* histograms = nullptr;  // of a step with histograms
};

class Stepper {
 public:
  using Callbacks = StepCallbacks;

  /// What it is given outlives it.
  Stepper(Model& model, Optimizer& optimizer, Objective& objective, const StepperOptions& options);

  /// Update number `step` + 1 with learning rate `lr`. Micro-batches weigh by their counted tokens: A of them equal one batch of all.
  /// A batch without counted tokens, a loss or norm that is not finite, a spike or an overflow of fp16 changes nothing and says so in
  /// `skipped`; `abort` says that the run must not go on. Where workers train apart the update is a worker's own, they exchange behind it
  /// when it is time, and the numbers are means over all (train/step/workers.h).
  StepResult run(Loader& loader, std::int64_t step, double lr, const Callbacks& callbacks = {});

  /// Why updates cannot run ahead of what the host knows; empty where they can.
  std::string why_not_ahead() const;
  /// The same update without a wait: whether it is made is decided on the device. Updates that were launched are settled in their order,
  /// all of them before anything else reads or changes what is trained.
  Launched launch(Loader& loader, std::int64_t step, double lr);
  /// Waits for an update.
  StepResult settle(Launched launched);

  /// Of the gradients as they are now, before clipping; waits for the device.
  double gradient_norm() const;

  /// What a resumed run must know of the updates before: recent losses and norms, the loss scale.
  config::Node state() const;
  void load(const config::Node& state);

  /// Number of the first micro-batch of the update after `step` completed ones.
  std::int64_t first_micro(std::int64_t step) const { return options_.batches.first_micro(step); }
  std::int64_t job_batch_size() const { return options_.batch_size; }
  std::int64_t job_seq_len() const { return options_.seq_len; }

  /// What it minimises; phases and hooks change its weights.
  Objective& objective() { return objective_; }

 private:
  Counts count(const std::vector<Batch>& batches, StepResult& result) const;
  StepResult update(Loader& loader, std::int64_t step, double lr, const Callbacks& callbacks);
  StepSums sums_of(const MicroBatches& update, const Callbacks& callbacks);
  std::pair<StepSums, at::Tensor> backward(const MicroBatches& update, const Callbacks& callbacks);
  /// Another forward and two backwards of every micro-batch, at the weights that the gradients are of.
  void estimate_curvature(const MicroBatches& update);
  std::vector<Batch> fetch(Loader& loader, std::int64_t step, StepResult& result) const;
  void reduce_gradients() const;
  void agree_on_gradients(bool& changed, StepResult& result) const;
  void check_replicas(double norm) const;
  at::Tensor norm_of_gradients() const;
  void unscale() const;
  bool show_gradients(const Callbacks& callbacks, StepResult& result) const;
  at::Tensor numbers_of(const StepSums& sums, const at::Tensor& norm) const;
  void read(const at::Tensor& numbers, const std::vector<Term>& terms, StepResult& result) const;
  void judge(std::int64_t step, bool overflowed, StepResult& result);
  bool hides_infinity(const StepResult& result) const;
  void move_weights(double lr, const at::Tensor& norm, const StepSums& sums);
  void make_update(double lr, const at::Tensor& norm, const at::Tensor& ok);
  void end_step(std::int64_t step, bool updated);
  double scale() const { return loss_scale_ ? loss_scale_->value() : 1; }

  Model& model_;
  Optimizer& optimizer_;
  Objective& objective_;
  StepperOptions options_;
  std::unique_ptr<Engine> engine_;
  ParameterList parameters_;
  std::vector<std::shared_ptr<WeightUnit>> units_;
  UpdateGuard guard_;
  std::optional<Verdict> verdict_;  // the guard's, on the device, once an update was launched
  std::int64_t under_way_ = 0;      // updates that were launched and not settled
  std::optional<LossScale> loss_scale_;
  SourceLosses source_losses_;
};

}  // namespace kf
