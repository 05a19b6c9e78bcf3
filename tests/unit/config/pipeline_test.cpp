// Schedules of pipelines: every list is run by a simulator, which knows the dependencies and nothing else.

#include <algorithm>
#include <set>
#include <tuple>

#include "config/plan/pipeline.h"
#include "core/error.h"

#include <catch2/catch.hpp>

namespace kf::config::test {
namespace {

using Catch::Contains;
using Key = std::tuple<PipelineWork, std::int64_t, std::int64_t>;  // work, piece, micro-batch

constexpr const char* kSchedules[] = {"gpipe", "1f1b", "interleaved_1f1b", "zero_bubble"};

/// What has to be done before an action.
std::vector<Key> needs(const PipelinePlan& plan, PipelineWork work, std::int64_t piece, std::int64_t micro) {
  if (work == PipelineWork::weight_gradients) {
    return {{PipelineWork::input_gradient, piece, micro}};
  }
  if (work == PipelineWork::forward) {
    return piece == 0 ? std::vector<Key>{} : std::vector<Key>{{work, piece - 1, micro}};
  }
  std::vector<Key> out{{PipelineWork::forward, piece, micro}};
  if (piece + 1 < plan.pieces()) {
    out.emplace_back(work, piece + 1, micro);
  }
  return out;
}

struct Ran {
  bool through = true;
  bool each_once = true;
  bool in_order = true;            // backwards of a piece, by micro-batch
  std::vector<std::int64_t> most;  // forwards whose gradients are not all there, by rank
};

/// Runs the lists, the last rank first, so that waits are as long as they can be.
Ran run(const PipelinePlan& plan) {
  Ran out;
  std::set<Key> done;
  std::vector<std::size_t> next(plan.actions.size(), 0);
  std::vector<std::int64_t> held(plan.actions.size(), 0);
  std::vector<std::int64_t> last(static_cast<std::size_t>(plan.pieces()), -1);
  out.most = held;
  const bool halves = plan.schedule == "zero_bubble";
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t i = plan.actions.size(); i-- > 0;) {
      if (next[i] == plan.actions[i].size()) {
        continue;
      }
      const PipelineAction& action = plan.actions[i][next[i]];
      const std::int64_t piece = plan.piece(static_cast<std::int64_t>(i), action.chunk);
      const std::vector<Key> before = needs(plan, action.work, piece, action.micro);
      if (!std::all_of(before.begin(), before.end(), [&](const Key& key) { return done.contains(key); })) {
        continue;
      }
      out.each_once = done.insert({action.work, piece, action.micro}).second && out.each_once;
      if (action.work == PipelineWork::backward || action.work == PipelineWork::input_gradient) {
        std::int64_t& newest = last[static_cast<std::size_t>(piece)];
        out.in_order = out.in_order && action.micro == newest + 1;
        newest = action.micro;
      }
      held[i] += action.work == PipelineWork::forward ? 1 : 0;
      out.most[i] = std::max(out.most[i], held[i]);
      held[i] -= action.work == (halves ? PipelineWork::weight_gradients : PipelineWork::backward) ? 1 : 0;
      ++next[i];
      moved = true;
    }
  }
  for (std::size_t i = 0; i < next.size(); ++i) {
    out.through = out.through && next[i] == plan.actions[i].size();
  }
  out.each_once = out.each_once && static_cast<std::int64_t>(done.size()) == plan.pieces() * plan.micros * (halves ? 3 : 2);
  return out;
}

std::int64_t bound(const PipelinePlan& plan, std::int64_t rank) {
  if (plan.schedule == "gpipe") {
    return plan.micros;
  }
  if (plan.schedule == "1f1b") {
    return plan.ranks - rank;
  }
  return plan.schedule == "zero_bubble" ? plan.ranks : 2 * (plan.ranks - rank - 1) + (plan.chunks - 1) * plan.ranks + 1;
}

Config pipeline(std::int64_t pp, const std::string& schedule, const Ints& layers, std::int64_t n_layers = 8) {
  Config config;
  config.model.n_layers = n_layers;
  config.distributed.pp = pp;
  config.distributed.pp_schedule = schedule;
  config.distributed.pp_layers = layers;
  return config;
}

}  // namespace

TEST_CASE("pipeline: every action comes once, nobody waits for ever, and memory stays within its bound", "[pipeline]") {
  std::int64_t shapes = 0;
  for (const char* schedule : kSchedules) {
    for (std::int64_t ranks = 1; ranks <= 8; ++ranks) {
      for (std::int64_t chunks = 1; chunks <= 4; ++chunks) {
        for (std::int64_t micros = 1; micros <= 19; ++micros) {
          const PipelinePlan plan = plan_pipeline(schedule, ranks, chunks, micros);
          const Ran ran = run(plan);
          bool bounded = true;
          for (std::int64_t rank = 0; rank < ranks; ++rank) {
            bounded = bounded && ran.most[static_cast<std::size_t>(rank)] <= bound(plan, rank);
          }
          ++shapes;
          if (!ran.through || !ran.each_once || !ran.in_order || !bounded) {
            CAPTURE(schedule, ranks, chunks, micros, ran.through, ran.each_once, ran.in_order, bounded);
            FAIL(picture(plan));
          }
        }
      }
    }
  }
  CHECK(shapes == 2432);
}

TEST_CASE("pipeline: bubbles are those of the papers", "[pipeline]") {
  // In forwards of a whole stage: M micro-batches take 3 M; what is waited is (P - 1) 3 for gpipe and 1f1b, a chunks-th of that where
  // pieces are interleaved, and (P - 1)(1 + 1 - 1) with the gradients of weights apart.
  for (std::int64_t ranks = 1; ranks <= 6; ++ranks) {
    for (std::int64_t rounds = 2; rounds <= 4; ++rounds) {
      const std::int64_t micros = ranks * rounds, work = 3 * micros;
      CAPTURE(ranks, micros);
      CHECK(times_of(plan_pipeline("gpipe", ranks, 1, micros)).end == work + (ranks - 1) * 3);
      CHECK(times_of(plan_pipeline("1f1b", ranks, 1, micros)).end == work + (ranks - 1) * 3);
      CHECK(times_of(plan_pipeline("zero_bubble", ranks, 1, micros)).end == work + (ranks - 1));
      for (std::int64_t chunks = 2; chunks <= 3; ++chunks) {  // in forwards of a piece
        CHECK(times_of(plan_pipeline("interleaved_1f1b", ranks, chunks, micros)).end == chunks * work + (ranks - 1) * 3);
      }
    }
  }
  CHECK(bubble_of(plan_pipeline("1f1b", 4, 1, 4)) == Approx(9.0 / 21));
  CHECK(bubble_of(plan_pipeline("1f1b", 1, 1, 4)) == Approx(0).margin(1e-12));
}

TEST_CASE("pipeline: a schedule is drawn as text", "[pipeline]") {
  CHECK(picture(plan_pipeline("1f1b", 2, 1, 3)) ==
        "rank 0  F0 F1 .  .  B0 -- F2 B1 -- .  B2 --\n"
        "rank 1  .  F0 B0 -- F1 B1 -- F2 B2 -- .  .\n");
  CHECK(picture(plan_pipeline("zero_bubble", 2, 1, 2)) ==
        "rank 0  F0 F1 .  I0 W0 I1 W1\n"
        "rank 1  .  F0 I0 F1 I1 W0 W1\n");
  CHECK_THAT(picture(plan_pipeline("interleaved_1f1b", 2, 2, 2)), Contains("rank 0  F0a F1a F0b F1b "));
  for (std::size_t columns : {40, 80}) {
    const std::string cut = picture(plan_pipeline("gpipe", 3, 1, 64), columns);
    CHECK(cut.find('\n') <= columns);
    CHECK_THAT(cut, Contains("...\n"));
  }
}

TEST_CASE("pipeline: models are cut as the settings say", "[pipeline]") {
  CHECK(pipeline_stages(pipeline(1, "1f1b", {})).size() == 1);
  CHECK(pipeline_stages(pipeline(2, "1f1b", {})).size() == 2);
  CHECK(pipeline_stages(pipeline(2, "interleaved_1f1b", {})).size() == 4);
  const std::vector<Stage> stages = pipeline_stages(pipeline(3, "gpipe", {1, 5, 2}));
  REQUIRE(stages.size() == 3);
  CHECK((stages[1].first == 1 && stages[1].end == 6 && !stages[1].embeds && !stages[1].heads));
  CHECK((stages[0].embeds && !stages[0].heads && stages[2].heads && !stages[2].embeds));
  CHECK_THROWS_WITH(pipeline_stages(pipeline(2, "gpipe", {1, 2})),
                    Contains("must have 2 entries that add up to model.n_layers (8); it has 2"));
}

}  // namespace kf::config::test
