// Phases, frozen weights and what hooks ask for, without a run around them.
#include "train/loop/phase.h"

#include <ATen/ATen.h>

#include "core/error.h"
#include "support/factor_at.h"
#include "support/tiny.h"
#include "train/loop/data_phases.h"
#include "train/loop/freezer.h"
#include "train/loop/steering.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

using namespace kf;
using Catch::Matchers::Contains;

namespace {

Phase phase(const std::string& name, std::optional<std::int64_t> steps) {
  Phase out;
  out.name = name;
  out.steps = steps;
  return out;
}

HookContext at_step(std::int64_t step) {
  HookContext context;
  context.state.step = step;
  return context;
}

/// Ends at a step, and falls from 1 to 0.
class Rules final : public PhaseRules {
 public:
  explicit Rules(std::int64_t last) : last_(last) {}
  bool has_stop_when() const override { return true; }
  bool stop_when(HookContext& context) override { return context.state.step == last_; }
  std::optional<double> lr_scale(double t) override { return 1 - t; }

 private:
  std::int64_t last_;
};

}  // namespace

TEST_CASE("phase: lengths, ends and rates follow each other; afterwards the job's own settings hold") {
  Phase second = phase("b", std::nullopt);
  second.until_step = 9;
  second.lr_scale = 0.5;
  Phases phases({phase("a", 4), second}, 20);
  HookContext context = at_step(3);
  CHECK_FALSE(phases.over(context));
  CHECK(phases.lr_scale(3) == 1.0);
  context = at_step(4);
  CHECK(phases.over(context));
  phases.advance(4);
  CHECK(phases.current()->name == "b");
  CHECK(phases.lr_scale(4) == 0.5);
  context = at_step(9);
  CHECK(phases.over(context));
  phases.advance(9);
  CHECK(phases.current() == nullptr);
  CHECK(phases.lr_scale(9) == 1.0);
}

TEST_CASE("phase: a function ends it early, and t runs over the length that it could have") {
  Phase first = phase("a", 10);
  first.rules = std::make_shared<Rules>(6);
  Phases phases({first, phase("b", std::nullopt)}, 20);
  CHECK(phases.lr_scale(0) == 1.0);
  CHECK(phases.lr_scale(5) == 0.5);
  HookContext context = at_step(6);
  CHECK(phases.over(context));
  phases.advance(6);
  CHECK(phases.current()->name == "b");
}

TEST_CASE("phase: what could never begin is an error, and so is another phase under a checkpoint") {
  CHECK_THROWS_WITH(Phases({phase("a", 20), phase("b", std::nullopt)}, 20), Contains("phases[1] ('b') never begins"));
  Phases saved({phase("a", 4), phase("b", std::nullopt)}, 20);
  saved.advance(4);
  Phases same({phase("a", 4), phase("b", std::nullopt)}, 30);
  same.load(saved.state(), 4);
  CHECK(same.current()->name == "b");
  Phases other({phase("a", 4), phase("c", std::nullopt)}, 20);
  CHECK_THROWS_WITH(other.load(saved.state(), 4), Contains("was saved in phase 1 ('b'), which is 'c' in this job"));
}

TEST_CASE("phase: those of the data have their rates from their first step on, whatever a checkpoint says of where it was") {
  config::DataConfig data;
  CHECK(data_phases(data, 20).empty());
  data.phases = {{2, {}, 0.5}, {6, {}, 0.25}, {30, {}, 0.125}};
  Phases phases(data_phases(data, 20), 20);
  CHECK(test::factor_at(phases, 1) == 1.0);
  CHECK(test::factor_at(phases, 2) == 0.5);
  CHECK(test::factor_at(phases, 5) == 0.5);
  CHECK(test::factor_at(phases, 6) == 0.25);
  CHECK(phases.current()->name == "data.phases[1]");
  CHECK(test::factor_at(phases, 19) == 0.25);
  const config::Node saved = phases.state();
  data.phases = {{9, {}, 0.5}, {12, {}, 0.25}};
  Phases moved(data_phases(data, 20), 20);
  moved.load(saved, 10);
  CHECK(moved.lr_scale(10) == 0.5);
  CHECK(test::factor_at(moved, 12) == 0.25);
  moved.load(saved, 8);
  CHECK(moved.lr_scale(8) == 1.0);
  data.phases = {{0, {}, 0.5}};
  Phases from_the_start(data_phases(data, 20), 20);
  CHECK(from_the_start.lr_scale(0) == 0.5);
  data.phases = {};
  data.anneal_start_step = 3;
  data.anneal_weights = {{"a", 9.0}};
  Phases annealing(data_phases(data, 20), 20);
  CHECK(test::factor_at(annealing, 3) == 1.0);
  CHECK(annealing.current()->name == "annealing");
}

TEST_CASE("freezer: frozen weights stand still bit for bit, the others move") {
  test::Bench bench(test::tiny_config());
  test::FixedLoader data({test::make_batch(test::random_tokens(2, 32, 1), test::random_tokens(2, 32, 2))});
  Freezer freezer(bench.model->parameters());
  freezer.set({{"layers.0.*", true}});
  const std::vector<at::Tensor> before = bench.masters();
  bench.step(data, 0, 1e-2);
  std::size_t moved = 0;
  std::size_t index = 0;
  for (const ParameterPtr& parameter : bench.model->parameters()) {
    const bool same = at::equal(parameter->master, before[index++]);
    CAPTURE(parameter->name);
    CHECK(same == (parameter->name.rfind("layers.0.", 0) == 0));
    moved += same ? 0 : 1;
  }
  CHECK(moved > 0);
  freezer.set({{"layers.0.*", false}});
  const at::Tensor still = bench.model->parameters()[1]->master.clone();
  bench.step(data, 1, 1e-2);
  CHECK_FALSE(at::equal(bench.model->parameters()[1]->master, still));
  CHECK_THROWS_WITH(freezer.set({{"*", true}}), Contains("every weight would be frozen"));
  CHECK_THROWS_WITH(freezer.set({{"layer.0.*", true}}), Contains("no weight is called 'layer.0.*'"));
}
