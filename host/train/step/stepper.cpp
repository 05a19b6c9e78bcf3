#include "train/step/stepper.h"

#include <ATen/ATen.h>
#include <c10/core/AutogradState.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "core/error.h"
#include "core/log.h"
#include "core/running.h"
#include "core/text.h"
#include "metrics/names/names.h"
#include "model/recompute/twice_differentiable.h"
#include "optim/clip.h"
#include "optim/qk_clip.h"
#include "train/step/curvature.h"
#include "train/step/look_ahead.h"
#include "train/step/losses.h"
#include "train/step/watch.h"

namespace kf {
namespace {

constexpr std::int64_t kPiece = 4096;  // positions whose cross entropy is taken at a time, beside a loss of one's own

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

/// Sums over the micro-batches of a step; tensors stay on the device. Terms are already divided by the global counts, and times the loss
/// scale.
struct Stepper::Totals : LossTerms {  // all of them defined
  std::int64_t micros = 0;
  std::int64_t counted = 0;
  std::int64_t positions = 0;
  std::int64_t ahead = 0;  // labels of multi-token prediction, over all depths
  at::Tensor infinite;     // 0-dim fp32: micro-batches whose loss is infinite
};

Stepper::Stepper(Model& model, Optimizer& optimizer, const Loss& loss, const StepperOptions& options)
    : model_(model),
      optimizer_(optimizer),
      job_loss_(loss),
      loss_(&loss),
      options_(options),
      parameters_(model.parameters()),
      units_(units_of(model)),
      guard_(options.guard) {
  if (options.loss_scale) {
    loss_scale_.emplace(*options.loss_scale);
  }
  KF_CHECK(!loss.takes_hidden() || model.head().has_value(), Code::config,
           "train.loss_fn = \"fused_linear_cross_entropy\" needs a model that gives its hidden state and its head away; this one does not: "
           "use \"cross_entropy\" or \"chunked_cross_entropy\"");
}

Stepper::Totals Stepper::count(const std::vector<Batch>& batches) const {
  Totals totals;
  totals.micros = static_cast<std::int64_t>(batches.size());
  for (const Batch& batch : batches) {
    totals.counted += batch.counted;
    totals.positions += batch.tokens.numel();
  }
  totals.ahead = looks_ahead() ? count_ahead(batches, options_.mtp_layers) : 0;
  add_counts(totals);
  const at::Tensor zero = at::zeros({}, at::TensorOptions(options_.device).dtype(at::kFloat));
  each_loss_term([&zero](at::Tensor& sum) { sum = zero.clone(); }, totals);
  totals.infinite = zero.clone();
  return totals;
}

/// What losses are divided by is counted over all ranks before the first forward.
void Stepper::add_counts(Totals& totals) const {
  if (options_.world.data().size() == 1) {
    return;
  }
  const at::Tensor counts = at::empty({3}, at::kLong);
  auto* const count = counts.mutable_data_ptr<std::int64_t>();
  count[0] = totals.counted;
  count[1] = totals.positions;
  count[2] = totals.ahead;
  options_.world.data().sum(counts);
  totals.counted = count[0];
  totals.positions = count[1];
  totals.ahead = count[2];
}

LossParts Stepper::losses_of(const Batch& batch, ForwardContext& context, const Totals& totals) {
  const at::Tensor labels = batch.labels.flatten();
  const LossFactors factors{scale() / static_cast<double>(totals.counted),
                            scale() * options_.z_loss_weight / static_cast<double>(totals.positions)};
  const std::int64_t length = batch.tokens.size(1);
  if (loss_->takes_hidden()) {
    const at::Tensor hidden = model_.hidden(batch.tokens, context).flatten(0, 1);  // (N, C)
    if (source_losses_.wanted()) {
      source_losses_.add(batch, [&](std::int64_t row, const at::Tensor& own) {
        return loss_->from_hidden(hidden.detach().narrow(0, row * length, length), *model_.head(), own, {1, 0}).ce;
      });
    }
    return loss_->from_hidden(hidden, *model_.head(), labels, factors);
  }
  const at::Tensor logits = model_.forward(batch.tokens, context).flatten(0, 1);  // (N, V)
  if (source_losses_.wanted()) {
    source_losses_.add(batch,
                       [&](std::int64_t row, const at::Tensor& own) { return plain_ce_sum(logits.narrow(0, row * length, length), own); });
  }
  const at::Tensor minimised = loss_->sum_of(logits, batch) / (static_cast<double>(totals.counted) / scale());
  LossParts parts;
  parts.ce = minimised;
  if (!loss_->own_name().empty()) {
    parts.own = minimised;
    const at::NoGradGuard no_grad;  // a piece at a time: the loss's own graph holds enough
    parts.ce = ChunkedCrossEntropy(kPiece).sum(logits.detach(), labels) * factors.ce;
  }
  parts.z_loss = factors.z > 0 ? z_loss_sum(logits) * factors.z : at::zeros({}, minimised.options());
  parts.total = factors.z > 0 ? minimised + parts.z_loss : minimised;
  return parts;
}

at::Tensor Stepper::mtp_loss(const std::vector<at::Tensor>& ahead, const Batch& batch, const Totals& totals) const {
  // Pooled: every label of every depth weighs the same (DeepSeek V3, equation 25, divides by depths of equal counts).
  const double factor = scale() * options_.mtp_loss_weight / static_cast<double>(std::max<std::int64_t>(1, totals.ahead));
  at::Tensor sum = at::zeros({}, totals.mtp_loss.options());
  for (std::size_t depth = 0; depth < ahead.size(); ++depth) {
    const at::Tensor labels = labels_ahead(batch, static_cast<std::int64_t>(depth) + 1).flatten();
    sum = sum + (loss_->takes_hidden() ? loss_->from_hidden(ahead[depth].flatten(0, 1), *model_.head(), labels, {factor, 0}).total
                                       : loss_->sum(model_.project(ahead[depth]).flatten(0, 1), labels) * factor);
  }
  return sum;
}

/// In shares of the step's loss, times the loss scale.
LossParts Stepper::forward(const Batch& batch, ForwardContext& context, const Totals& totals) {
  std::vector<at::Tensor> ahead;
  model_.begin_micro(context);
  context.doc_ids = batch.doc_ids;
  context.ahead = looks_ahead() ? &ahead : nullptr;
  LossParts loss = losses_of(batch, context, totals);
  context.ahead = nullptr;
  if (!ahead.empty()) {
    loss.mtp_loss = mtp_loss(ahead, batch, totals);
    loss.total = loss.total + loss.mtp_loss;
  }
  const AuxLosses aux = model_.aux_losses();
  for (const at::Tensor& term : {aux.balance, aux.router_z}) {
    if (term.defined()) {
      // The term is a mean over this micro-batch's positions: its share of the step's mean.
      const at::Tensor share =
          term * (aux_factor_ * scale() * static_cast<double>(batch.tokens.numel()) / static_cast<double>(totals.positions));
      loss.total = loss.total + share;
      loss.aux_loss = loss.aux_loss.defined() ? loss.aux_loss + share.detach() : share.detach();
    }
  }
  return loss;
}

/// Ranks have different sequences in their micro-batches, so what draws by its number draws differently.
std::int64_t Stepper::micro_of_all(std::int64_t micro) const {
  const Share share = options_.world.share();
  return micro * share.world + share.rank;
}

void Stepper::micro_step(const Batch& host_batch, std::int64_t step, std::int64_t micro, Totals& totals) {
  ForwardContext context;
  context.step = step;
  context.micro = micro_of_all(micro);
  context.largest_scores = options_.qk_clip_tau > 0 ? &largest_scores_ : nullptr;
  context.observe = observe_;
  const LossParts loss = forward(to_device(host_batch, options_.device), context, totals);
  torch::autograd::backward({loss.total}, {});
  for (const ParameterPtr& parameter : parameters_) {
    parameter->accumulate();
  }
  for (const auto& unit : units_) {
    unit->end_micro();
  }
  model_.end_micro();
  totals.infinite += loss.total.detach().isinf();
  const auto add = [](at::Tensor& sum, const at::Tensor& term) {
    if (term.defined()) {
      sum += term.detach();
    }
  };
  each_loss_term(add, totals, loss);
}

void Stepper::estimate_curvature(const std::vector<Batch>& batches, std::int64_t step, const Totals& totals) {
  const SingleThreadedBackward single;
  const TwiceDifferentiable twice;
  const WholeWeights whole(model_);
  source_losses_.begin(0);  // they were counted in the first pass
  CurvatureEstimate estimate(parameters_, options_.seed, step);
  for (std::size_t micro = 0; micro < batches.size(); ++micro) {
    ForwardContext context;
    context.step = step;
    context.micro = micro_of_all(static_cast<std::int64_t>(micro));
    estimate.add(forward(to_device(batches[micro], options_.device), context, totals).total);
    model_.drop_micro();
  }
  const Curvature curvature = estimate.take(scale(), options_.world.data());
  if (curvature.empty()) {
    log::warn("step {}: the estimate of the loss's curvature is not finite; the optimizer goes on with the one before", step + 1);
    return;
  }
  optimizer_.take_curvature(curvature);
}

void Stepper::read(const Totals& totals, const at::Tensor& norm, StepResult& result) const {
  std::vector<at::Tensor> sums{norm.to(at::kFloat), totals.infinite};
  each_loss_term([&sums](const at::Tensor& sum) { sums.push_back(sum); }, totals);
  const at::Tensor all = at::stack(sums);
  options_.world.data().sum(all.narrow(0, 1, all.size(0) - 1));  // shares of the ranks; the norm is that of all already
  const at::Tensor read = all.to(at::kCPU);                      // the one wait of the step
  const float* number = read.const_data_ptr<float>();
  result.grad_norm = *number++;
  result.infinite_loss = *number++ > 0;
  each_term([&](double& mean) { mean = *number++ / scale(); }, result);  // in the order of each_loss_term
  const double own = *number++ / scale();
  const double ahead = *number++ / scale();
  result.loss = result.ce;
  if (const std::string name = loss_->own_name(); !name.empty()) {
    result.loss = own;
    result.extra.emplace_back(row_key::of(row_key::own_loss, name), own);
  }
  result.loss = result.loss + result.z_loss + result.aux_loss;
  if (options_.mtp_layers > 0 && (totals.ahead > 0 || !looks_ahead())) {  // no mean over no label
    result.loss += ahead;
    result.extra.emplace_back(row_key::mtp_loss, ahead);
  }
}

/// An overflow of fp16 (`overflowed`: backward's own gradients were not finite) is the scale's business as long as halving it can help;
/// everything else is the guard's, also what a hook has written into finite gradients.
void Stepper::judge(std::int64_t step, bool overflowed, StepResult& result) {
  if (loss_scale_ && overflowed && std::isfinite(result.loss) && !std::isfinite(result.grad_norm) && !loss_scale_->exhausted()) {
    const double before = loss_scale_->value();
    loss_scale_->overflow();
    result.skipped = format("a gradient overflowed fp16 at loss scale {}; it is now {}", before, loss_scale_->value());
    return;
  }
  UpdateGuard::Verdict verdict = guard_.judge(result.loss, result.grad_norm, step, hides_infinity(result));
  result.skipped = std::move(verdict.skip);
  result.abort = std::move(verdict.abort);
  if (loss_scale_ && result.skipped.empty()) {
    loss_scale_->good();
  }
}

void Stepper::update(double lr, const at::Tensor& norm) {
  clip_gradients(parameters_, norm, options_.grad_clip_norm);
  optimizer_.step(lr);
  if (options_.qk_clip_tau > 0) {
    for (const at::Tensor& largest : largest_scores_) {
      if (largest.defined()) {
        options_.world.data().largest(largest);
      }
    }
    clip_queries(model_, largest_scores_, options_.qk_clip_tau);
  }
}

std::vector<Batch> Stepper::fetch(Loader& loader, std::int64_t step, StepResult& result) const {
  const Running running("waiting for data", nullptr, step + 1);
  const auto begin = std::chrono::steady_clock::now();
  std::vector<Batch> batches;
  for (std::int64_t micro = 0; micro < options_.batches.micros(step); ++micro) {
    batches.push_back(loader.batch(options_.batches.first_micro(step) + micro));
  }
  result.data_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return batches;
}

/// Forward and backward of every micro-batch.
void Stepper::backward(const std::vector<Batch>& batches, std::int64_t step, const Callbacks& callbacks, Totals& totals) {
  if (callbacks.watch != nullptr) {
    callbacks.watch->begin();
    observe_ = callbacks.watch->observer();
  }
  const SingleThreadedBackward single;
  for (std::size_t micro = 0; micro < batches.size(); ++micro) {
    micro_step(batches[micro], step, static_cast<std::int64_t>(micro), totals);
    if (callbacks.micro_end) {
      callbacks.micro_end();
    }
  }
  observe_ = nullptr;
}

/// Everything of the step is let go; where the optimizer has moved the masters, what forward reads follows.
void Stepper::end_step(std::int64_t step, bool updated) {
  const double progress = options_.max_steps > 0 ? static_cast<double>(step) / static_cast<double>(options_.max_steps) : 0;
  model_.end_step(updated, progress);
  for (const ParameterPtr& parameter : parameters_) {
    parameter->clear_gradient();
  }
  if (model_.unit() != nullptr) {
    model_.unit()->end_use();
  }
  if (updated) {
    publish(parameters_);
  }
  for (const auto& unit : units_) {
    unit->rest();
  }
}

StepResult Stepper::run(Loader& loader, std::int64_t step, double lr, const Callbacks& callbacks) {
  StepResult result;
  const std::vector<Batch> batches = fetch(loader, step, result);
  Totals totals = count(batches);
  source_losses_.begin(callbacks.sources);
  result.tokens = totals.positions;
  result.counted = totals.counted;
  if (totals.counted == 0) {
    result.skipped = "the batch has no label that counts";
    return result;
  }
  largest_scores_.clear();
  if (model_.unit() != nullptr) {
    model_.unit()->begin_use();  // what is in no block is whole through the step
  }
  backward(batches, step, callbacks, totals);
  reduce_gradients();
  if (loss_scale_) {
    unscale();
  }
  at::Tensor norm = norm_of_gradients();
  read(totals, norm, result);
  const bool overflowed = !std::isfinite(result.grad_norm);
  result.sources = source_losses_.read(options_.world.data());
  bool changed = callbacks.backward_end && show_gradients(callbacks, result);
  agree_on_gradients(changed, result);
  if (changed) {
    norm = norm_of_gradients();  // norm, guard and clipping see what the optimizer will
    result.grad_norm = norm.item<double>();
  }
  if (callbacks.watch != nullptr) {
    callbacks.watch->gradients();
  }
  if (result.skipped.empty()) {
    judge(step, overflowed, result);
  } else {  // a hook has decided; that a number must end the run still holds
    result.abort = guard_.abort_of(result.loss, result.grad_norm, step, hides_infinity(result));
  }
  if (result.skipped.empty() && optimizer_.wants_curvature()) {
    estimate_curvature(batches, step, totals);
  }
  if (result.skipped.empty()) {
    if (callbacks.watch != nullptr) {
      callbacks.watch->before_update();
    }
    update(lr, norm);
    if (callbacks.watch != nullptr) {
      callbacks.watch->after_update();
    }
  }
  end_step(step, result.skipped.empty());
  return result;
}

config::Node Stepper::state() const {
  config::Table out;
  out["guard"] = guard_.state();
  if (loss_scale_) {
    out["loss_scale"] = config::Node(loss_scale_->value());
    out["good_updates"] = config::Node(loss_scale_->good_updates());
  }
  return config::Node(std::move(out));
}

void Stepper::load(const config::Node& state) {
  const config::Table* const table = state.table();
  const config::Node* const guard = table != nullptr ? table->find("guard") : nullptr;
  KF_CHECK(guard != nullptr, Code::checkpoint, "the checkpoint holds no memory of recent updates");
  guard_.load(*guard);
  const config::Node* const scale = table->find("loss_scale");
  const config::Node* const good = table->find("good_updates");
  if (loss_scale_ && scale != nullptr && good != nullptr) {
    loss_scale_->set(std::get<double>(scale->value), std::get<std::int64_t>(good->value));
  }
}

Batch to_device(const Batch& batch, at::Device device) {
  if (device.is_cpu()) {
    return batch;
  }
  // A copy from page-locked memory (data.pin_memory) waits for nothing; one from ordinary memory for all that was begun before it.
  const auto move = [&](const at::Tensor& tensor) { return tensor.defined() ? tensor.to(device, /*non_blocking=*/true) : at::Tensor(); };
  Batch moved = batch;
  moved.tokens = move(batch.tokens);
  moved.labels = move(batch.labels);
  moved.doc_ids = move(batch.doc_ids);
  return moved;
}

}  // namespace kf
