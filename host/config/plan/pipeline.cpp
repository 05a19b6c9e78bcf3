#include "config/plan/pipeline.h"

#include <algorithm>

#include "core/error.h"
#include "core/text.h"

namespace kf::config {
namespace {

using Actions = std::vector<PipelineAction>;
constexpr PipelineWork kForward = PipelineWork::forward;
constexpr PipelineWork kBackward = PipelineWork::backward;

/// Some forwards first, then one of each in turn, then what is left.
Actions in_turns(const Actions& forwards, const Actions& backwards, std::int64_t first) {
  Actions out;
  std::size_t next = 0;
  const auto run = [&] { out.push_back(forwards[next++]); };
  while (next < forwards.size() && static_cast<std::int64_t>(next) < first) {
    run();
  }
  for (const PipelineAction& backward : backwards) {
    if (next < forwards.size()) {
      run();
    }
    out.push_back(backward);
  }
  return out;
}

Actions each_micro(PipelineWork work, std::int64_t micros) {
  Actions out;
  for (std::int64_t micro = 0; micro < micros; ++micro) {
    out.push_back({work, 0, micro});
  }
  return out;
}

Actions gpipe(std::int64_t micros) { return in_turns(each_micro(kForward, micros), each_micro(kBackward, micros), micros); }

Actions one_each(std::int64_t rank, std::int64_t ranks, std::int64_t micros) {
  return in_turns(each_micro(kForward, micros), each_micro(kBackward, micros), ranks - rank - 1);
}

/// Micro-batches go in runs of as many as there are ranks through one piece of a rank after the other. What is beyond `micros` stands for
/// the missing ones of the last run, and is left out at the end: no action of another micro-batch waits for it.
Actions interleaved(std::int64_t rank, std::int64_t ranks, std::int64_t chunks, std::int64_t micros) {
  Actions forwards, backwards;
  for (std::int64_t first = 0; first < micros; first += ranks) {
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
      for (std::int64_t micro = first; micro < first + ranks; ++micro) {
        forwards.push_back({kForward, chunk, micro});
        backwards.push_back({kBackward, chunks - 1 - chunk, micro});
      }
    }
  }
  Actions out = in_turns(forwards, backwards, 2 * (ranks - rank - 1) + (chunks - 1) * ranks);
  std::erase_if(out, [micros](const PipelineAction& action) { return action.micro >= micros; });
  return out;
}

/// As 1f1b, with the gradients of weights `rank` micro-batches behind.
Actions zero_bubble(std::int64_t rank, std::int64_t ranks, std::int64_t micros) {
  Actions out;
  std::int64_t weights = 0;
  for (PipelineAction action : one_each(rank, ranks, micros)) {
    const bool back = action.work == kBackward;
    action.work = back ? PipelineWork::input_gradient : kForward;
    out.push_back(action);
    if (back && action.micro >= rank) {
      out.push_back({PipelineWork::weight_gradients, 0, weights++});
    }
  }
  while (weights < micros) {
    out.push_back({PipelineWork::weight_gradients, 0, weights++});
  }
  return out;
}

Actions actions_of(const std::string& schedule, std::int64_t rank, std::int64_t ranks, std::int64_t chunks, std::int64_t micros) {
  if (schedule == "gpipe") {
    return gpipe(micros);
  }
  if (schedule == "1f1b") {
    return one_each(rank, ranks, micros);
  }
  if (schedule == "interleaved_1f1b") {
    return interleaved(rank, ranks, chunks, micros);
  }
  KF_CHECK(schedule == "zero_bubble", Code::config, "distributed.pp_schedule: there is no schedule '{}'", schedule);
  return zero_bubble(rank, ranks, micros);
}

/// When the forward and the backward of each (piece, micro-batch) end; -1: they have not run.
class Ends {
 public:
  explicit Ends(const PipelinePlan& plan)
      : micros_(static_cast<std::size_t>(plan.micros)),
        pieces_(plan.pieces()),
        ends_(2 * static_cast<std::size_t>(pieces_) * micros_, -1) {}

  std::int64_t& of(bool forward, std::int64_t piece, std::int64_t micro) {
    return ends_[(static_cast<std::size_t>(piece) * 2 + (forward ? 0 : 1)) * micros_ + static_cast<std::size_t>(micro)];
  }
  /// When what an action waits for has ended; -1 where it has not.
  std::int64_t ready(const PipelineAction& action, std::int64_t piece) {
    if (action.work == PipelineWork::weight_gradients) {
      return of(false, piece, action.micro);
    }
    if (action.work == kForward) {
      return piece == 0 ? 0 : of(true, piece - 1, action.micro);
    }
    const std::int64_t own = of(true, piece, action.micro);
    const std::int64_t later = piece + 1 == pieces_ ? own : of(false, piece + 1, action.micro);
    return own < 0 || later < 0 ? -1 : std::max(own, later);
  }

 private:
  std::size_t micros_;
  std::int64_t pieces_;
  std::vector<std::int64_t> ends_;
};

std::string cell(const PipelinePlan& plan, const PipelineAction& action) {
  constexpr const char* kLetters = "FBIW";
  std::string out = kLetters[static_cast<std::size_t>(action.work)] + std::to_string(action.micro);
  if (plan.chunks > 1) {
    out += action.chunk < 26 ? std::string(1, static_cast<char>('a' + action.chunk)) : format(".{}", action.chunk);
  }
  return out;
}

}  // namespace

PipelinePlan plan_pipeline(const std::string& schedule, std::int64_t ranks, std::int64_t chunks, std::int64_t micros) {
  KF_CHECK(ranks >= 1 && chunks >= 1 && micros >= 1, Code::config, "a pipeline of {} ranks, {} pieces a rank and {} micro-batches", ranks,
           chunks, micros);
  PipelinePlan plan{schedule, ranks, schedule == "interleaved_1f1b" ? chunks : 1, micros, {}};
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    plan.actions.push_back(actions_of(schedule, rank, ranks, plan.chunks, micros));
  }
  return plan;
}

std::int64_t duration(PipelineWork work) { return work == kBackward ? 2 : 1; }

PipelineTimes times_of(const PipelinePlan& plan) {
  Ends ends(plan);
  PipelineTimes out;
  out.begins.resize(plan.actions.size());
  std::vector<std::int64_t> free(plan.actions.size(), 0);
  std::size_t left = 0;
  for (const Actions& list : plan.actions) {
    left += list.size();
  }
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t rank = 0; rank < plan.actions.size(); ++rank) {
      while (out.begins[rank].size() < plan.actions[rank].size()) {
        const PipelineAction& action = plan.actions[rank][out.begins[rank].size()];
        const std::int64_t piece = plan.piece(static_cast<std::int64_t>(rank), action.chunk);
        const std::int64_t ready = ends.ready(action, piece);
        if (ready < 0) {
          break;
        }
        const std::int64_t begin = std::max(free[rank], ready);
        out.begins[rank].push_back(begin);
        free[rank] = begin + duration(action.work);
        if (action.work != PipelineWork::weight_gradients) {
          ends.of(action.work == kForward, piece, action.micro) = free[rank];
        }
        --left;
        moved = true;
      }
    }
  }
  KF_CHECK(left == 0, Code::other, "the ranks of this schedule ({}, {} ranks, {} micro-batches) wait for each other", plan.schedule,
           plan.ranks, plan.micros);
  out.end = *std::max_element(free.begin(), free.end());
  return out;
}

double bubble_of(const PipelinePlan& plan) {
  std::int64_t work = 0;
  for (const Actions& list : plan.actions) {
    for (const PipelineAction& action : list) {
      work += duration(action.work);
    }
  }
  return 1 - static_cast<double>(work) / static_cast<double>(plan.ranks * times_of(plan).end);
}

std::string picture(const PipelinePlan& plan, std::size_t columns) {
  const PipelineTimes times = times_of(plan);
  std::size_t wide = 1;
  for (const PipelineAction& action : plan.actions.front()) {
    wide = std::max(wide, cell(plan, action).size() + 1);
  }
  const std::string last = std::to_string(plan.ranks - 1);
  const auto padded = [](const std::string& text, std::size_t width) {
    return text + std::string(width - std::min(width, text.size()), ' ');
  };
  const std::size_t head = 5 + last.size() + 2;
  const std::size_t room = columns > head + wide + 4 ? (columns - head - 4) / wide : 1;
  const bool cut = static_cast<std::size_t>(times.end) > room;
  std::string out;
  for (std::size_t rank = 0; rank < plan.actions.size(); ++rank) {
    std::vector<std::string> cells(static_cast<std::size_t>(times.end), ".");
    for (std::size_t i = 0; i < plan.actions[rank].size(); ++i) {
      const auto at = static_cast<std::size_t>(times.begins[rank][i]);
      cells[at] = cell(plan, plan.actions[rank][i]);
      if (duration(plan.actions[rank][i].work) == 2) {
        cells[at + 1] = std::string(wide - 1, '-');
      }
    }
    std::string line = padded("rank " + std::to_string(rank), head);
    for (std::size_t i = 0; i < cells.size() && i < room; ++i) {
      line += padded(cells[i], wide);
    }
    line += cut ? "..." : "";
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return out;
}

std::int64_t pipeline_chunks(const DistributedConfig& distributed) {
  return distributed.pp > 1 && distributed.pp_schedule == "interleaved_1f1b" ? distributed.pp_chunks : 1;
}

std::vector<Stage> pipeline_stages(const Config& config) {
  const std::int64_t pieces = config.distributed.pp * pipeline_chunks(config.distributed);
  const auto& layers = config.distributed.pp_layers;
  if (layers.empty() || config.distributed.pp == 1) {
    return cut_stages(config.model, pieces, config.train.seq_len);
  }
  std::vector<Stage> out;
  std::int64_t first = 0;
  for (const std::int64_t count : layers) {
    out.push_back({first, first + count, out.empty(), out.size() + 1 == layers.size()});
    first += count;
  }
  KF_CHECK(static_cast<std::int64_t>(out.size()) == pieces && first == config.model.n_layers, Code::config,
           "distributed.pp_layers must have {} entries that add up to model.n_layers ({}); it has {}, which add up to {}", pieces,
           config.model.n_layers, out.size(), first);
  return out;
}

}  // namespace kf::config
