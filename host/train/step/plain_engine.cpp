#include "train/step/plain_engine.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <utility>

#include "core/trace.h"
#include "model/single_threaded_backward.h"
#include "train/step/step_sums.h"
#include "train/step/to_device.h"

namespace kf {
CutBatch own_positions_of(const Batch& batch, const PlainEngineOptions& options) {
  Batch whole = to_device(batch, options.device);
  return options.cp != nullptr ? cut_batch(std::move(whole), *options.cp, options.order) : CutBatch{std::move(whole), {}};
}

PlainEngine::PlainEngine(Model& model, const PlainEngineOptions& options)
    : model_(model),
      options_(options),
      parameters_(model.parameters()),
      line_(line_of(model)),
      zero_(at::zeros({}, at::TensorOptions(options.device).dtype(at::kFloat))) {}

Minimised PlainEngine::forward(const MicroBatches& update, const Objective& objective, std::size_t number, ForwardContext& context,
                               SourceLosses* sources) {
  const TraceRange range(TraceKind::phase, "forward");
  const CutBatch cut = own_positions_of(update.batches[number], options_);
  context.step = update.step;
  context.micro = static_cast<std::int64_t>(number) * options_.share.world + options_.share.rank;
  tell(context, cut);
  model_.begin_micro(context);
  return objective(model_, {cut.batch, context, update.all, update.scale, sources});
}

void PlainEngine::backward(const at::Tensor& loss, bool last) {
  const TraceRange range(TraceKind::phase, "backward");
  if (line_ != nullptr) {
    line_->begin_backward(last);
  }
  torch::autograd::backward({loss}, {});
  for (const ParameterPtr& parameter : parameters_) {
    parameter->accumulate();
  }
  if (line_ != nullptr) {
    line_->end_backward();
  }
}

StepSums PlainEngine::run(const MicroBatches& update, const Objective& objective, const EngineCallbacks& callbacks) {
  const SingleThreadedBackward single;
  StepSums sums;
  ForwardResults all;
  for (std::size_t number = 0; number < update.batches.size(); ++number) {
    ForwardResults results;
    ForwardContext context;
    context.results = &results;
    context.tracks_scores = options_.tracks_scores;
    context.observe = callbacks.observe;
    const Minimised loss = forward(update, objective, number, context, callbacks.source_losses);
    backward(loss.total, number + 1 == update.batches.size());
    model_.end_micro(results);
    add(sums, loss, zero_);
    for (std::size_t layer = 0; layer < results.largest_scores.size(); ++layer) {
      all.note_largest(layer, results.largest_scores[layer]);
    }
    if (callbacks.micro_end) {
      callbacks.micro_end();
    }
  }
  sums.largest_scores = std::move(all.largest_scores);
  return sums;
}

void PlainEngine::losses(const MicroBatches& update, const Objective& objective, const std::function<void(const at::Tensor& loss)>& visit) {
  const SingleThreadedBackward single;
  for (std::size_t number = 0; number < update.batches.size(); ++number) {
    ForwardResults results;
    ForwardContext context;
    context.results = &results;
    visit(forward(update, objective, number, context, nullptr).total);
  }
}

}  // namespace kf
