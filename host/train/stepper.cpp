#include "train/stepper.h"

#include <ATen/ATen.h>
#include <c10/core/AutogradState.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/text.h"
#include "optim/clip.h"
#include "train/look_ahead.h"

namespace kf {
namespace {

/// Backward on this thread alone: gradient hooks may be Lua, and one device needs no more.
class SingleThreadedBackward {
 public:
  SingleThreadedBackward() : before_(state().get_multithreading_enabled()) { state().set_multithreading_enabled(false); }
  ~SingleThreadedBackward() { state().set_multithreading_enabled(before_); }
  SingleThreadedBackward(const SingleThreadedBackward&) = delete;
  SingleThreadedBackward& operator=(const SingleThreadedBackward&) = delete;

 private:
  static c10::AutogradState& state() { return c10::AutogradState::get_tls_state(); }
  bool before_;
};

}  // namespace

/// Sums over the micro-batches of a step; tensors stay on the device.
struct Stepper::Totals {
  std::int64_t counted = 0;
  std::int64_t positions = 0;
  std::int64_t ahead = 0;      // labels of multi-token prediction, over all depths
  at::Tensor ce, z, aux, mtp;  // 0-dim fp32, already divided by the global counts
};

Stepper::Stepper(Model& model, Optimizer& optimizer, const Loss& loss, const StepperOptions& options)
    : model_(model), optimizer_(optimizer), loss_(loss), options_(options), parameters_(model.parameters()) {}

at::Tensor Stepper::mtp_loss(const std::vector<at::Tensor>& ahead, const Batch& batch, const Totals& totals) const {
  at::Tensor sum = at::zeros({}, totals.mtp.options());
  for (std::size_t depth = 0; depth < ahead.size(); ++depth) {
    const at::Tensor labels = labels_ahead(batch, static_cast<std::int64_t>(depth) + 1);
    sum = sum + loss_.sum(model_.project(ahead[depth]).flatten(0, 1), labels.flatten());
  }
  // Pooled: every label of every depth weighs the same (DeepSeek V3, equation 25, divides by depths of equal counts).
  return sum * (options_.mtp_loss_weight / static_cast<double>(std::max<std::int64_t>(1, totals.ahead)));
}

void Stepper::micro_step(const Batch& host_batch, std::int64_t step, std::int64_t micro, Totals& totals) {
  const Batch batch = to_device(host_batch, options_.device);
  ForwardContext context;
  context.step = step;
  context.micro = micro;
  context.doc_ids = batch.doc_ids;
  std::vector<at::Tensor> ahead;
  if (options_.mtp_layers > 0 && options_.mtp_loss_weight > 0) {
    context.ahead = &ahead;
  }
  const at::Tensor logits = model_.forward(batch.tokens, context).flatten(0, 1);  // (N, V)
  const at::Tensor ce = loss_.sum(logits, batch.labels.flatten()) / static_cast<double>(totals.counted);
  at::Tensor total = ce;
  if (options_.z_loss_weight > 0) {
    const at::Tensor z = z_loss_sum(logits) * (options_.z_loss_weight / static_cast<double>(totals.positions));
    total = total + z;
    totals.z += z.detach();
  }
  if (!ahead.empty()) {
    const at::Tensor mtp = mtp_loss(ahead, batch, totals);
    total = total + mtp;
    totals.mtp += mtp.detach();
  }
  const AuxLosses aux = model_.aux_losses();
  for (const at::Tensor& term : {aux.balance, aux.router_z}) {
    if (term.defined()) {
      // The term is a mean over this micro-batch's positions: its share of the step's mean.
      const at::Tensor share = term * (static_cast<double>(batch.tokens.numel()) / static_cast<double>(totals.positions));
      total = total + share;
      totals.aux += share.detach();
    }
  }
  torch::autograd::backward({total}, {});
  for (const ParameterPtr& parameter : parameters_) {
    parameter->accumulate();
  }
  model_.end_micro();
  totals.ce += ce.detach();
}

StepResult Stepper::run(Loader& loader, std::int64_t step, double lr, const Callbacks& callbacks) {
  std::vector<Batch> batches;
  Totals totals;
  for (std::int64_t micro = 0; micro < options_.grad_accum_steps; ++micro) {
    batches.push_back(loader.batch(step * options_.grad_accum_steps + micro));
    totals.counted += batches.back().counted;
    totals.positions += batches.back().tokens.numel();
  }
  totals.ahead = options_.mtp_loss_weight > 0 ? count_ahead(batches, options_.mtp_layers) : 0;
  StepResult result;
  result.tokens = totals.positions;
  result.counted = totals.counted;
  if (totals.counted == 0) {
    result.skipped = "the batch has no label that counts";
    return result;
  }

  const at::Tensor zero = at::zeros({}, at::TensorOptions(options_.device).dtype(at::kFloat));
  totals.ce = zero.clone();
  totals.z = zero.clone();
  totals.aux = zero.clone();
  totals.mtp = zero.clone();
  {
    const SingleThreadedBackward single;
    for (std::size_t micro = 0; micro < batches.size(); ++micro) {
      micro_step(batches[micro], step, static_cast<std::int64_t>(micro), totals);
      if (callbacks.micro_end) {
        callbacks.micro_end();
      }
    }
  }
  const at::Tensor norm = gradient_norm(parameters_);
  const at::Tensor read =
      at::stack({totals.ce, totals.z, totals.aux, totals.mtp, norm.to(at::kFloat)}).to(at::kCPU);  // the one wait of the step
  const float* const numbers = read.const_data_ptr<float>();
  result.ce = numbers[0];
  result.z_loss = numbers[1];
  result.aux_loss = numbers[2];
  result.grad_norm = numbers[4];
  if (options_.mtp_layers > 0) {
    result.mtp_loss = numbers[3];
  }
  if (callbacks.backward_end) {
    callbacks.backward_end(result);
  }
  if (!std::isfinite(result.loss()) || !std::isfinite(result.grad_norm)) {
    result.skipped = format("loss {} and gradient norm {} are not both finite", result.loss(), result.grad_norm);
  } else {
    clip_gradients(parameters_, norm, options_.grad_clip_norm);
    optimizer_.step(lr);
  }
  const double progress = options_.max_steps > 0 ? static_cast<double>(step) / static_cast<double>(options_.max_steps) : 0;
  model_.end_step(result.skipped.empty(), progress);
  for (const ParameterPtr& parameter : parameters_) {
    if (result.skipped.empty()) {
      parameter->publish();
    }
    parameter->clear_gradient();
  }
  return result;
}

Batch to_device(const Batch& batch, at::Device device) {
  if (device.is_cpu()) {
    return batch;
  }
  // Through page-locked memory: a copy from ordinary memory would make the host wait for everything before it.
  const auto move = [&](const at::Tensor& tensor) {
    return tensor.defined() ? tensor.pin_memory().to(device, /*non_blocking=*/true) : at::Tensor();
  };
  Batch moved = batch;
  moved.tokens = move(batch.tokens);
  moved.labels = move(batch.labels);
  moved.doc_ids = move(batch.doc_ids);
  return moved;
}

}  // namespace kf
