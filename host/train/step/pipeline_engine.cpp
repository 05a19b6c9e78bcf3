#include "train/step/pipeline_engine.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/trace.h"
#include "model/single_threaded_backward.h"
#include "train/step/piece_objective.h"
#include "train/step/step_sums.h"

namespace kf {

using config::PipelineAction;
using config::PipelineWork;

/// An update under way.
struct PipelineEngine::Step {
  const MicroBatches& update;
  const Objective& objective;
  const PieceObjective& pieces;
  const EngineCallbacks& callbacks;
  const config::PipelinePlan& plan;
  PipelineMail mail;
  at::Tensor zero;
  StepSums sums;
  ForwardResults largest;                                           // of all micro-batches
  std::map<std::pair<std::int64_t, std::int64_t>, Flight> flights;  // by chunk and micro-batch
  std::map<std::int64_t, ForwardResults> counted;                   // of the later pieces of a micro-batch, until the first one is through
  std::int64_t rank = 0;

  std::int64_t piece(const PipelineAction& action) const { return plan.piece(rank, action.chunk); }
};

PipelineEngine::PipelineEngine(PipelinedModel& model, const PlainEngineOptions& options)
    : model_(model), options_(options), weights_(model.pieces().size()), line_(line_of(model)) {
  for (std::size_t piece = 0; piece < weights_.size(); ++piece) {
    if (model.rank_of(piece) == model.ranks().rank()) {
      weights_[piece] = model.staged().weights_of(model.pieces()[piece]);
    }
  }
}

const config::PipelinePlan& PipelineEngine::plan_of(std::int64_t micros) {
  if (!plan_ || plan_->micros != micros) {
    const config::DistributedConfig& settings = model_.settings();
    plan_ = config::plan_pipeline(settings.pp_schedule, model_.ranks().size(), config::pipeline_chunks(settings), micros);
  }
  return *plan_;
}

StepSums PipelineEngine::run(const MicroBatches& update, const Objective& objective, const EngineCallbacks& callbacks) {
  const SingleThreadedBackward single;
  const config::PipelinePlan& plan = plan_of(static_cast<std::int64_t>(update.batches.size()));
  const auto room = [&](std::int64_t micro) {
    const at::Tensor& tokens = update.batches[static_cast<std::size_t>(micro)].tokens;
    const std::int64_t length = tokens.size(1);
    return model_.room_for(tokens.size(0), options_.cp != nullptr ? own_length(length, *options_.cp, options_.order) : length);
  };
  const auto* const pieces = dynamic_cast<const PieceObjective*>(&objective);
  KF_CHECK(pieces != nullptr, Code::config, "this objective cannot be taken in pieces: distributed.pp must be 1");
  Step step{update,
            objective,
            *pieces,
            callbacks,
            plan,
            PipelineMail(model_.ranks(), plan, room),
            at::zeros({}, at::TensorOptions(options_.device).dtype(at::kFloat)),
            {},
            {},
            {},
            {},
            model_.ranks().rank()};
  for (const PipelineAction& action : plan.actions[static_cast<std::size_t>(step.rank)]) {
    act(step, action);
  }
  step.mail.finish();
  join(step.sums);
  step.sums.largest_scores = std::move(step.largest.largest_scores);
  return std::move(step.sums);
}

void PipelineEngine::act(Step& step, const PipelineAction& action) {
  switch (action.work) {
    case PipelineWork::forward: return forward(step, action);
    case PipelineWork::backward:
    case PipelineWork::input_gradient: return backward(step, action);
    case PipelineWork::weight_gradients: return weight_gradients(step, action);
  }
}

void PipelineEngine::forward(Step& step, const PipelineAction& action) {
  const TraceRange range(TraceKind::phase, "forward");
  const std::int64_t number = step.piece(action);
  const Piece& piece = model_.pieces()[static_cast<std::size_t>(number)];
  Flight& flight = step.flights[{action.chunk, action.micro}];
  const PutOffProducts::Scope scope(step.plan.schedule == "zero_bubble" ? &flight.weights : nullptr);
  const CutBatch cut = own_positions_of(step.update.batches[static_cast<std::size_t>(action.micro)], options_);
  const Batch& batch = cut.batch;
  ForwardContext context;
  context.results = &flight.results;
  context.tracks_scores = options_.tracks_scores;
  context.observe = step.callbacks.observe;
  context.step = step.update.step;
  context.micro = action.micro * options_.share.world + options_.share.rank;
  tell(context, cut);
  if (number > 0) {
    flight.in = step.mail.receive({true, number - 1, action.micro}).requires_grad_(true);
  }
  model_.begin_micro(context);
  const Micro micro{batch, context, step.update.all, step.update.scale, piece.heads ? step.callbacks.source_losses : nullptr};
  Minimised share;
  if (piece.heads) {
    Tail tail(model_, flight.in);
    share = step.objective(tail, micro);
  } else {
    flight.out = model_.staged().run_piece(piece, number > 0 ? flight.in : batch.tokens, batch.tokens, context);
    step.mail.send({true, number, action.micro}, flight.out);
    Tail whole(model_, {});  // for the terms of its own layers
    share = step.pieces.of_piece(whole, micro);
  }
  add(step.sums, share, step.zero);
  flight.share = share.total;
}

void PipelineEngine::backward(Step& step, const PipelineAction& action) {
  const TraceRange range(TraceKind::phase, "backward");
  const std::int64_t number = step.piece(action);
  Flight& flight = step.flights.at({action.chunk, action.micro});
  torch::autograd::variable_list results, gradients;
  if (flight.out.defined()) {
    const at::Tensor came = step.mail.receive({false, number + 1, action.micro});
    if (flight.out.requires_grad()) {
      results.push_back(flight.out);
      gradients.push_back(came);
    }
  }
  if (flight.share.defined() && flight.share.requires_grad()) {
    results.push_back(flight.share);
    gradients.emplace_back();
  }
  if (line_ != nullptr) {  // gradients of weights that come later wait for the end of the step
    line_->begin_backward(action == step.plan.actions[static_cast<std::size_t>(step.rank)].back());
  }
  if (!results.empty()) {
    const PutOffProducts::Scope scope(action.work == PipelineWork::input_gradient ? &flight.weights : nullptr);
    torch::autograd::backward(results, gradients);
  }
  if (number > 0) {
    const at::Tensor gradient = flight.in.grad();
    step.mail.send({false, number, action.micro}, gradient.defined() ? gradient : at::zeros_like(flight.in));
  }
  accumulate(number);
  if (line_ != nullptr) {
    line_->end_backward();
  }
  end_backward(step, action, std::move(flight.results));
  if (action.work == PipelineWork::backward) {
    step.flights.erase({action.chunk, action.micro});
  } else {
    flight.in = flight.out = flight.share = at::Tensor();
  }
}

void PipelineEngine::weight_gradients(Step& step, const PipelineAction& action) {
  const TraceRange range(TraceKind::phase, "backward");
  step.flights.at({action.chunk, action.micro}).weights.run();
  step.flights.erase({action.chunk, action.micro});
  accumulate(step.piece(action));
}

/// Gradients of the last backward into their sums.
void PipelineEngine::accumulate(std::int64_t piece) {
  for (const ParameterPtr& weight : weights_[static_cast<std::size_t>(piece)]) {
    weight->accumulate();
  }
}

/// What a micro-batch has left in the pieces of this rank joins the step together, as from one rank that runs them all.
void PipelineEngine::end_backward(Step& step, const PipelineAction& action, ForwardResults&& results) {
  for (std::size_t layer = 0; layer < results.largest_scores.size(); ++layer) {
    step.largest.note_largest(layer, results.largest_scores[layer]);
  }
  ForwardResults& all = step.counted[action.micro];
  all.take(std::move(results));
  if (action.chunk > 0) {
    return;
  }
  model_.end_micro(all);
  step.counted.erase(action.micro);
  if (step.callbacks.micro_end) {
    step.callbacks.micro_end();
  }
}

/// The sums of all ranks of the pipeline, on each of them.
void PipelineEngine::join(StepSums& sums) const {
  std::vector<at::Tensor> numbers{sums.infinite};
  for (const Term& term : sums.terms) {
    numbers.push_back(term.share);
  }
  const at::Tensor all = at::stack(numbers);
  model_.ranks().sum(all);
  sums.infinite = all[0];
  for (std::size_t i = 0; i < sums.terms.size(); ++i) {
    sums.terms[i].share = all[static_cast<std::int64_t>(i) + 1];
  }
}

void PipelineEngine::losses(const MicroBatches& /*update*/, const Objective& /*objective*/,
                            const std::function<void(const at::Tensor& loss)>& /*visit*/) {
  fail(Code::config,
       "this optimizer needs second derivatives of the loss, whose graph ends at the border of a pipeline stage (distributed.pp = {}): use "
       "another optimizer.name, or another axis",
       model_.settings().pp);
}

}  // namespace kf
