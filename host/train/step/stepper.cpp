#include "train/step/stepper.h"

#include <ATen/ATen.h>

#include <chrono>
#include <cmath>
#include <vector>

#include "core/error.h"
#include "core/log.h"
#include "core/running.h"
#include "core/trace.h"
#include "metrics/names/names.h"
#include "model/recompute/twice_differentiable.h"
#include "optim/clip.h"
#include "optim/diloco.h"
#include "optim/qk_clip.h"
#include "train/step/curvature.h"
#include "train/step/cut_batch.h"
#include "train/step/pipeline_engine.h"
#include "train/step/plain_engine.h"
#include "train/step/watch.h"
#include "train/step/weight_histograms.h"
#include "train/step/workers.h"

namespace kf {

namespace {

std::unique_ptr<Engine> make_engine(Model& model, const StepperOptions& options) {
  const PlainEngineOptions common{options.device, options.share.value_or(drawing_share(options.world)), options.qk_clip_tau > 0,
                                  &options.world.along(Axis::cp), options.cp_order};
  if (PipelinedModel* const pipeline = as_pipeline(model)) {
    return std::make_unique<PipelineEngine>(*pipeline, common);
  }
  return std::make_unique<PlainEngine>(model, common);
}

}  // namespace

Stepper::Stepper(Model& model, Optimizer& optimizer, Objective& objective, const StepperOptions& options)
    : model_(model),
      optimizer_(optimizer),
      objective_(objective),
      options_(options),
      engine_(make_engine(model, options)),
      parameters_(model.parameters()),
      units_(units_of(model)),
      guard_(options.guard) {
  if (options.loss_scale) {
    loss_scale_.emplace(*options.loss_scale);
  }
  PipelinedModel* const pipeline = as_pipeline(model);
  objective.check(pipeline != nullptr ? pipeline->whole() : model);
}

/// Forward and backward of every micro-batch.
StepSums Stepper::sums_of(const MicroBatches& update, const Callbacks& callbacks) {
  EngineCallbacks wanted;
  wanted.micro_end = callbacks.micro_end;
  wanted.source_losses = source_losses_.wanted() ? &source_losses_ : nullptr;
  if (callbacks.watch != nullptr) {
    callbacks.watch->begin();
    wanted.observe = callbacks.watch->observer();
  }
  return engine_->run(update, objective_, wanted);
}

void Stepper::estimate_curvature(const MicroBatches& update) {
  const TraceRange range(TraceKind::phase, "curvature");
  const TwiceDifferentiable twice;
  const WholeWeights whole(model_);
  CurvatureEstimate estimate(parameters_, options_.seed, update.step);
  engine_->losses(update, objective_, [&](const at::Tensor& loss) { estimate.add(loss); });
  const Curvature curvature = estimate.take(scale(), options_.world);
  if (curvature.empty()) {
    log::warn("step {}: the estimate of the loss's curvature is not finite; the optimizer goes on with the one before", update.step + 1);
    return;
  }
  optimizer_.take_curvature(curvature);
}

/// The norm, the micro-batches whose loss is infinite, the terms: (2 + terms) fp32, of all ranks.
at::Tensor Stepper::numbers_of(const StepSums& sums, const at::Tensor& norm) const {
  std::vector<at::Tensor> numbers{norm.to(at::kFloat), sums.infinite};
  for (const Term& term : sums.terms) {
    numbers.push_back(term.share);
  }
  at::Tensor all = at::stack(numbers);
  if (Group& data = options_.world.data(); data.size() > 1) {
    data.sum(all.narrow(0, 1, all.size(0) - 1));  // shares of the ranks; the norm is that of all already
  }
  return all;
}

/// `numbers` as `numbers_of`, in host memory.
void Stepper::read(const at::Tensor& numbers, const std::vector<Term>& terms, StepResult& result) const {
  const float* number = numbers.const_data_ptr<float>();
  result.grad_norm = *number++;
  result.infinite_loss = *number++ > 0;
  for (const Term& term : terms) {
    const double mean = *number++ / scale();
    if (double* const member = find_term(result, term.name)) {
      *member = mean;
    } else {
      result.extra.emplace_back(term.name, mean);
    }
    result.loss += term.minimised ? mean : 0;
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
  result.not_finite = !std::isfinite(result.loss) || !std::isfinite(result.grad_norm);
  UpdateGuard::Verdict verdict = guard_.judge(result.loss, result.grad_norm, step, hides_infinity(result));
  result.skipped = std::move(verdict.skip);
  result.abort = std::move(verdict.abort);
  if (loss_scale_ && result.skipped.empty()) {
    loss_scale_->good();
  }
}

/// Clips and moves, in one where the optimizer can. `ok` as of UpdateTerms.
void Stepper::make_update(double lr, const at::Tensor& norm, const at::Tensor& ok) {
  const TraceRange range(TraceKind::phase, "optimizer");
  UpdateTerms terms{clip_factor(norm, options_.grad_clip_norm), ok};
  if (!optimizer_.takes_factor()) {
    scale_gradients(parameters_, std::exchange(terms.factor, {}));
  }
  terms.factor.defined() || terms.ok.defined() ? optimizer_.step_with(lr, terms) : optimizer_.step(lr);
}

void Stepper::move_weights(double lr, const at::Tensor& norm, const StepSums& sums) {
  make_update(lr, norm, {});
  if (options_.qk_clip_tau > 0) {
    for (const at::Tensor& largest : sums.largest_scores) {
      if (largest.defined()) {
        options_.world.data().largest(largest);
        options_.world.along(Axis::tp).largest(largest);  // each has the heads that lie there
      }
    }
    clip_queries(model_, sums.largest_scores, options_.qk_clip_tau);
  }
}

std::vector<Batch> Stepper::fetch(Loader& loader, std::int64_t step, StepResult& result) const {
  const Running running("waiting for data", nullptr, step + 1);
  const TraceRange range(TraceKind::phase, "data");
  const auto begin = std::chrono::steady_clock::now();
  std::vector<Batch> batches;
  for (std::int64_t micro = 0; micro < options_.batches.micros(step); ++micro) {
    batches.push_back(loader.batch(options_.batches.first_micro(step) + micro));
  }
  result.data_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return batches;
}

/// Everything of the step is let go; where the optimizer has moved the masters, what forward reads follows.
void Stepper::end_step(std::int64_t step, bool updated) {
  const TraceRange range(TraceKind::phase, "end of the step");
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

Counts Stepper::count(const std::vector<Batch>& batches, StepResult& result) const {
  Counts counts = objective_.count(batches);
  counts.add_ranks(options_.world.data());
  const std::int64_t readers_alike = options_.world.along(Axis::cp).size();  // who have all counted the same sequences
  for (std::int64_t* number : {&counts.labels, &counts.positions, &counts.ahead}) {
    *number /= readers_alike;
  }
  result.tokens = counts.positions;
  result.counted = counts.labels;
  if (counts.labels == 0) {
    result.skipped = "the batch has no label that counts";
  }
  return counts;
}

/// The gradients of all ranks, and what backward summed; with their norm.
std::pair<StepSums, at::Tensor> Stepper::backward(const MicroBatches& update, const Callbacks& callbacks) {
  source_losses_.begin(callbacks.sources);
  if (model_.unit() != nullptr) {
    model_.unit()->begin_use();  // what is in no block is whole through the step
  }
  StepSums sums = sums_of(update, callbacks);
  const TraceRange range(TraceKind::phase, "gradients");
  reduce_gradients();
  if (loss_scale_) {
    unscale();
  }
  return {std::move(sums), norm_of_gradients()};
}

StepResult Stepper::run(Loader& loader, std::int64_t step, double lr, const Callbacks& callbacks) {
  StepResult result = update(loader, step, lr, callbacks);
  if (options_.outer != nullptr) {
    options_.outer->end_update(step + 1);
    mean_over_workers(result, options_.outer->workers());
    result.extra.emplace_back(row_key::diloco_workers, static_cast<double>(options_.outer->present()));
  }
  return result;
}

/// That of this worker, where there are several.
StepResult Stepper::update(Loader& loader, std::int64_t step, double lr, const Callbacks& callbacks) {
  StepResult result;
  const std::vector<Batch> batches = fetch(loader, step, result);
  const MicroBatches update{batches, step, count(batches, result), scale()};
  if (!result.has_loss()) {
    return result;
  }
  auto [sums, norm] = backward(update, callbacks);
  read(numbers_of(sums, norm).to(at::kCPU), sums.terms, result);  // the one wait of the step
  const bool overflowed = !std::isfinite(result.grad_norm);
  result.sources = source_losses_.read(options_.world.data(), options_.world.along(Axis::pp));
  bool changed = callbacks.backward_end && show_gradients(callbacks, result);
  agree_on_gradients(changed, result);
  if (changed) {
    norm = norm_of_gradients();  // norm, guard and clipping see what the optimizer will
    result.grad_norm = norm.item<double>();
    check_replicas(result.grad_norm);
  }
  if (callbacks.watch != nullptr) {
    callbacks.watch->gradients();
  }
  if (callbacks.histograms != nullptr) {
    callbacks.histograms->gradients();
  }
  if (result.skipped.empty()) {
    judge(step, overflowed, result);
  } else {  // a hook has decided; that a number must end the run still holds
    result.abort = guard_.abort_of(result.loss, result.grad_norm, step, hides_infinity(result));
  }
  if (result.skipped.empty() && optimizer_.wants_curvature()) {
    estimate_curvature(update);
  }
  if (result.skipped.empty()) {
    if (callbacks.watch != nullptr) {
      callbacks.watch->before_update();
    }
    move_weights(lr, norm, sums);
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
  if (options_.outer != nullptr) {
    out["workers"] = told_by_workers(config::Node(out), options_.outer->workers());
  }
  return config::Node(std::move(out));
}

void Stepper::load(const config::Node& state) {
  const config::Table* table = state.table();
  if (options_.outer != nullptr && table != nullptr) {
    table = own_of_workers(*table, options_.outer->workers().rank());
  }
  const config::Node* const guard = table != nullptr ? table->find("guard") : nullptr;
  KF_CHECK(guard != nullptr, Code::checkpoint, "the checkpoint holds no memory of recent updates");
  guard_.load(*guard);
  const config::Node* const scale = table->find("loss_scale");
  const config::Node* const good = table->find("good_updates");
  if (loss_scale_ && scale != nullptr && good != nullptr) {
    loss_scale_->set(std::get<double>(scale->value), std::get<std::int64_t>(good->value));
  }
}

}  // namespace kf
