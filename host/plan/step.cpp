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

PieceTime piece_time(const Weights& weights, const Compute& compute, const Traffic& traffic, const Gpu& gpu, const config::Stage& piece) {
  PieceTime out;
  double attention = 0;
  for (const auto& [layer, count] : layers_of(weights, piece)) {
    const Seconds one = compute.layer(layer);
    const double times = real(count);
    out.computing += {times * one.forward, times * one.inputs, times * one.weights, times * one.again};
    attention += times * compute.attention_forward(layer);
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
                   const Traffic& traffic, std::int64_t stage, double hidden) {
  const std::vector<Flow> flows = traffic.of_step();
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

/// What a stage does in a step.
struct StepPlanner::StageTime {
  std::vector<PieceTime> pieces;
  OnceTime once;
  double busy = 0, computing = 0, again = 0;  // of all micro-batches
};

const Reaches& StepPlanner::reaches(std::int64_t stage) {
  const std::int64_t stages = layout_.mesh.degree(Axis::pp), first = layout_.mesh.size() / stages * stage;
  const std::pair<std::int64_t, bool> at(first % gpu_.node, stage + 1 == stages);
  const auto found = reaches_.find(at);
  return found != reaches_.end() ? found->second : reaches_.emplace(at, Reaches::of(layout_.mesh, gpu_.node, stage)).first->second;
}

StepPlanner::StageTime StepPlanner::stage_time(const config::Config& config, const Compute& compute, std::int64_t stage) {
  const Traffic traffic(config, weights_, layout_, reaches(stage), stage);
  const double micros = real(config::BatchPlan(config.train, layout_.mesh.readers()).micros(0));
  StageTime out;
  double hidden = 0;
  for (const config::Stage& piece : layout_.stages.at(static_cast<std::size_t>(stage))) {
    const PieceTime own = piece_time(weights_, compute, traffic, gpu_, piece);
    out.busy += micros * (own.forward + own.inputs + own.weights);
    out.computing += micros * own.computing.total();
    out.again += micros * own.computing.again;
    hidden += own.hidden;
    out.pieces.push_back(own);
  }
  out.once = once_time(config, weights_, layout_, gpu_, compute, traffic, stage, hidden);
  return out;
}

StepPlan StepPlanner::plan(const config::Config& config, double worth) {
  const std::int64_t ranks = layout_.mesh.degree(Axis::pp), micros = config::BatchPlan(config.train, layout_.mesh.readers()).micros(0);
  const Compute compute(config, gpu_, layout_);
  const auto chunks = static_cast<std::int64_t>(layout_.stages[0].size());
  std::map<std::pair<const Reaches*, Composition>, StageTime> known;
  std::vector<PieceTime> pieces(static_cast<std::size_t>(ranks * chunks));
  StepPlan out;
  double busiest = 0, mean = 0;
  OnceTime once;
  for (std::int64_t stage = 0; stage < ranks; ++stage) {
    std::pair<const Reaches*, Composition> key(&reaches(stage), composition_of(weights_, layout_, stage));
    auto found = known.find(key);
    if (found == known.end()) {
      found = known.emplace(std::move(key), stage_time(config, compute, stage)).first;
    }
    const StageTime& own = found->second;
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
      pieces[static_cast<std::size_t>(chunk * ranks + stage)] = own.pieces[static_cast<std::size_t>(chunk)];
    }
    mean += own.busy / real(ranks);
    if (own.busy > busiest) {
      busiest = own.busy;
      out.time.computing = own.computing;
      out.time.again = own.again;
      out.time.waiting = own.busy - own.computing;
    }
    once = own.once.total() > once.total() ? own.once : once;
  }
  double end = busiest;
  if (ranks > 1 && (busiest + once.total()) / kSteady <= worth) {
    const Flow message = Traffic(config, weights_, layout_, reaches(0), 0).handed_on();
    end = end_of(config::plan_pipeline(config.distributed.pp_schedule, ranks, chunks, micros), pieces,
                 send_seconds(gpu_, message.reach, message.bytes));
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
  out.tokens = real(config::tokens_per_step(config, layout_.mesh.readers()));
  out.tokens_per_second = out.tokens / out.time.total;
  out.mfu = out.tokens_per_second * config::flops_per_token(config.model, config.train.seq_len) /
            (peak_of(gpu_, config.train) * real(layout_.mesh.size()));
  return out;
}

StepPlan plan_step(const config::Config& config, const Weights& weights, const Layout& layout, const Gpu& gpu) {
  return StepPlanner(weights, layout, gpu).plan(config);
}

}  // namespace kf::plan
