#include "plan/step.h"

#include <algorithm>

#include "config/plan/batch_plan.h"
#include "config/plan/budget.h"
#include "config/plan/derived.h"
#include "config/plan/pipeline.h"
#include "core/error.h"

namespace kf::plan {
namespace {

using config::PipelineAction;
using config::PipelineWork;

double real(std::int64_t n) { return static_cast<double>(n); }

/// What a micro-batch costs in one piece of the model.
struct PieceTime {
  Seconds computing;
  double forward = 0, inputs = 0, weights = 0;  // with the messages that are waited for
  double hidden = 0;                            // of backward: computation behind which messages of a step can hide
  double of(PipelineWork work) const {
    switch (work) {
      case PipelineWork::forward: return forward;
      case PipelineWork::backward: return inputs + weights;
      case PipelineWork::input_gradient: return inputs;
      case PipelineWork::weight_gradients: return weights;
    }
    return 0;
  }
};

double sum_of(const std::vector<Flow>& flows, const Gpu& gpu, Flow::When when) {
  double out = 0;
  for (const Flow& flow : flows) {
    out += flow.when == when ? flow.seconds(gpu) : 0;
  }
  return out;
}

PieceTime piece_time(const Compute& compute, const Traffic& traffic, const Gpu& gpu, const config::Stage& piece) {
  PieceTime out;
  double attention = 0;
  for (std::int64_t layer = piece.first; layer < piece.end; ++layer) {
    out.computing += compute.layer(layer);
    attention += compute.attention_forward(layer);
  }
  if (piece.heads) {
    out.computing += compute.head();
  }
  const std::vector<Flow> flows = traffic.of_micro(piece);
  const auto late = [&](Flow::When when, double beside) { return std::max(0.0, sum_of(flows, gpu, when) - beside); };
  out.forward = out.computing.forward + sum_of(flows, gpu, Flow::When::forward) + late(Flow::When::hidden_attention, attention) +
                late(Flow::When::hidden_forward, out.computing.forward);
  out.inputs = out.computing.inputs + out.computing.again + sum_of(flows, gpu, Flow::When::backward) +
               late(Flow::When::hidden_backward, out.computing.backward());
  out.weights = out.computing.weights;
  out.hidden = std::max(0.0, out.computing.backward() - sum_of(flows, gpu, Flow::When::hidden_backward));
  return out;
}

/// When the last action of a pipeline ends. An action waits for the one before it on its rank and for its message.
double end_of(const config::PipelinePlan& plan, const std::vector<PieceTime>& pieces, double message) {
  const auto ranks = static_cast<std::size_t>(plan.ranks), count = static_cast<std::size_t>(plan.pieces());
  const auto micros = static_cast<std::size_t>(plan.micros);
  std::vector<double> forward(count * micros, -1), backward(count * micros, -1), now(ranks, 0);
  std::vector<std::size_t> next(ranks, 0);
  const auto ready = [&](std::size_t piece, const PipelineAction& action) {
    const std::size_t micro = static_cast<std::size_t>(action.micro);
    if (action.work == PipelineWork::forward) {
      const double before = piece == 0 ? 0 : forward[(piece - 1) * micros + micro];
      return piece == 0 ? 0 : before < 0 ? -1 : before + message;
    }
    if (action.work == PipelineWork::weight_gradients || piece + 1 == count) {
      return 0.0;
    }
    const double behind = backward[(piece + 1) * micros + micro];
    return behind < 0 ? -1 : behind + message;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const std::vector<PipelineAction>& actions = plan.actions[rank];
      while (next[rank] < actions.size()) {
        const PipelineAction& action = actions[next[rank]];
        const auto piece = static_cast<std::size_t>(plan.piece(static_cast<std::int64_t>(rank), action.chunk));
        const double from = ready(piece, action);
        if (from < 0) {
          break;
        }
        now[rank] = std::max(now[rank], from) + pieces[piece].of(action.work);
        if (action.work != PipelineWork::weight_gradients) {
          (action.work == PipelineWork::forward ? forward : backward)[piece * micros + static_cast<std::size_t>(action.micro)] = now[rank];
        }
        ++next[rank];
        moved = true;
      }
    }
  }
  return *std::max_element(now.begin(), now.end());
}

/// What a stage waits for, and does, once a step.
struct OnceTime {
  double sharing = 0, updating = 0;
  double total() const { return sharing + updating; }
};

OnceTime once_time(const config::Config& config, const Weights& weights, const Layout& layout, const Gpu& gpu, const Compute& compute,
                   std::int64_t stage, double hidden) {
  const std::vector<Flow> flows = Traffic(config, weights, layout, gpu.node, stage).of_step();
  OnceTime out;
  const double beside =
      config.distributed.reduce_each_micro ? hidden * real(config::BatchPlan(config.train, layout.mesh.readers()).micros(0)) : hidden;
  out.sharing = sum_of(flows, gpu, Flow::When::update) + std::max(0.0, sum_of(flows, gpu, Flow::When::hidden_backward) - beside);
  double numbers = 0, state = 0;
  for (const Weight* weight : weights_of(weights, layout, config.model, stage)) {
    if (weight->trains && !weight->buffer) {
      const double share = held_numbers(*weight, layout) / real(layout.shards(*weight));
      numbers += share;
      state += weight->numbers() > 0 ? weight->state_bytes * share / weight->numbers() : 0;
    }
  }
  out.updating = compute.update(numbers, state);
  return out;
}

}  // namespace

StepPlan plan_step(const config::Config& config, const Weights& weights, const Layout& layout, const Gpu& gpu) {
  const std::int64_t ranks = layout.mesh.degree(Axis::pp), micros = config::BatchPlan(config.train, layout.mesh.readers()).micros(0);
  const Compute compute(config, gpu, layout);
  const auto chunks = static_cast<std::int64_t>(layout.stages[0].size());
  std::vector<PieceTime> pieces(static_cast<std::size_t>(ranks * chunks));
  StepPlan out;
  double busiest = 0, mean = 0;
  OnceTime once;
  for (std::int64_t stage = 0; stage < ranks; ++stage) {
    const Traffic traffic(config, weights, layout, gpu.node, stage);
    double busy = 0, computing = 0, again = 0, hidden = 0;
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
      const config::Stage& piece = layout.stages[static_cast<std::size_t>(stage)][static_cast<std::size_t>(chunk)];
      const PieceTime own = piece_time(compute, traffic, gpu, piece);
      pieces[static_cast<std::size_t>(chunk * ranks + stage)] = own;
      busy += real(micros) * (own.forward + own.inputs + own.weights);
      computing += real(micros) * own.computing.total();
      again += real(micros) * own.computing.again;
      hidden += own.hidden;
    }
    mean += busy / real(ranks);
    if (busy > busiest) {
      busiest = busy;
      out.time.computing = computing;
      out.time.again = again;
      out.time.waiting = busy - computing;
    }
    const OnceTime own = once_time(config, weights, layout, gpu, compute, stage, hidden);
    once = own.total() > once.total() ? own : once;
  }
  double end = busiest;
  if (ranks > 1) {
    const Flow message = Traffic(config, weights, layout, gpu.node, 0).handed_on();
    end = end_of(config::plan_pipeline(config.distributed.pp_schedule, ranks, chunks, micros), pieces,
                 send_seconds(gpu, message.reach, message.bytes));
  }
  out.time.bubble = end - busiest;
  out.bubble_share = end > 0 ? 1 - mean / end : 0;
  out.time.sharing = once.sharing;
  out.time.updating = once.updating;
  out.time.total = end + once.total();
  StepTime& t = out.time;
  for (double* part : {&t.total, &t.computing, &t.again, &t.waiting, &t.bubble, &t.sharing, &t.updating}) {
    *part /= kSteady;
  }
  out.tokens = real(config::tokens_per_step(config, layout.mesh.readers()));
  out.tokens_per_second = out.tokens / out.time.total;
  out.mfu = out.tokens_per_second * config::flops_per_token(config.model, config.train.seq_len) /
            (peak_of(gpu, config.train) * real(layout.mesh.size()));
  return out;
}

}  // namespace kf::plan
