// Which checkpoints stay, and copies for writing behind the training.
#include "checkpoint/retention.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>

#include <limits>

#include "checkpoint/host_copies.h"
#include "checkpoint/mirror.h"
#include "core/error.h"
#include "core/plain_file.h"
#include "support/checkpoints.h"
#include "support/temp_dir.h"
#include "unit/checkpoint/fakes.h"
#include "unit/checkpoint/listing.h"

#include <catch2/catch.hpp>  // after LibTorch, whose CHECK it replaces

using namespace kf;
using Catch::Matchers::Contains;

namespace {

using Steps = std::vector<std::int64_t>;

std::vector<SavedStep> without_metric(const Steps& steps) {
  std::vector<SavedStep> out;
  for (const std::int64_t step : steps) {
    out.push_back({step});
  }
  return out;
}

CheckpointState state_at(std::int64_t step, std::optional<double> loss = {}, std::int64_t eval_step = -1) {
  CheckpointState state;
  state.run = {.step = step, .tokens = step * 100};
  state.job = config::Node(config::Table{});
  state.job_toml = "[train]\n";
  if (loss) {
    EvalResult eval;
    eval.step = eval_step < 0 ? step : eval_step;
    eval.loss = *loss;
    eval.tokens = 1;
    put_eval(state.values, eval);
  }
  return state;
}

}  // namespace

TEST_CASE("retention: the newest stay, milestones stay, steps above are left alone", "[checkpoint]") {
  CheckpointOptions options;
  options.keep_last = 2;
  options.keep_forever = [](std::int64_t step) { return step <= 512 && (step & (step - 1)) == 0; };
  CHECK(outdated(without_metric({2000, 1000, 512, 256, 4, 3, 2, 1, 0}), {3000}, options) == Steps{1000, 3});
  CHECK(outdated(without_metric({40, 30, 20, 10}), {25}, options) == Steps{10});  // set back: 40 and 30 are the course before
  options.keep_last = 0;
  CHECK(outdated(without_metric({40, 30, 20, 10}), {50}, options).empty());
}

TEST_CASE("retention: damaged ones are not counted among the last, and go when as many whole ones are newer", "[checkpoint]") {
  CheckpointOptions options;
  options.keep_last = 2;
  const std::vector<SavedStep> there{{40}, {30, {}, "has 3 bytes"}, {20}, {10}};
  CHECK(outdated(there, {40}, options) == Steps{10});
  CHECK(outdated(there, {50}, options) == Steps{30, 20, 10});
}

TEST_CASE("retention: the best by a metric stay, of equal ones the older, whatever has none", "[checkpoint]") {
  CheckpointOptions options;
  options.keep_last = 1;
  options.keep_best = 2;
  const std::vector<SavedStep> there{{10, 3.0}, {20, 1.0}, {30, std::nullopt}, {40, 2.0}, {50, 2.0}};
  CHECK(outdated(there, {60, 9.0}, options) == Steps{50, 30, 10});
  options.best_is_largest = true;
  CHECK(outdated(there, {60, 9.0}, options) == Steps{50, 40, 30, 20});
  CHECK(metric_of(state_at(5, 1.5), "loss") == 1.5);
  CHECK_FALSE(metric_of(state_at(5, 1.5, /*eval_step=*/4), "loss").has_value());  // of an earlier evaluation
  CHECK_FALSE(metric_of(state_at(5, 1.5), "accuracy").has_value());
  CHECK_FALSE(metric_of(state_at(5, std::numeric_limits<double>::quiet_NaN()), "loss").has_value());
  CHECK_FALSE(metric_of(state_at(5), "loss").has_value());
}

TEST_CASE("retention: what is best is read from the folders, so a restart keeps it", "[checkpoint]") {
  const test::TempDir dir;
  CheckpointOptions options{.dir = dir.path(), .keep_last = 1};
  options.keep_best = 1;
  test::FakeModel model;
  test::FakeOptimizer optimizer;
  for (const auto& [step, loss] : {std::pair(1, 2.0), std::pair(2, 1.0), std::pair(3, 3.0), std::pair(4, 1.5)}) {
    CheckpointManager restarted(options);
    test::save(restarted, state_at(step, loss), model, optimizer);
  }
  CHECK(test::listing(dir.path()) == "latest step_2 step_4");
}

TEST_CASE("copies: are apart from the live tensors; kept buffers are the same ones at every save", "[checkpoint]") {
  const bool kept = GENERATE(false, true);
  HostCopies copies(kept);
  const at::Tensor live = at::full({3, 2}, 1.0).t();  // strides that a file does not have
  const auto take = [&] {
    StagedSave staged;
    staged.model.tensors.emplace_back("w", live);
    copies.take(staged);
    return staged.model.tensors.front().second;
  };
  const at::Tensor first = take();
  CHECK(first.is_contiguous());
  live.fill_(2);
  CHECK(at::equal(first, at::full({2, 3}, 1.0)));
  const at::Tensor second = take();
  CHECK(at::equal(second, live));
  CHECK((second.const_data_ptr() == first.const_data_ptr()) == kept);
}

TEST_CASE("mirror: a copy is checked, and appears whole or not at all", "[checkpoint]") {
  const test::TempDir dir;
  test::FakeModel model;
  test::FakeOptimizer optimizer;
  optimizer.step(0.5);
  CheckpointManager checkpoints({.dir = dir / "one"});
  const fs::path saved = test::save(checkpoints, state_at(3), model, optimizer);
  write_file_atomic(saved / "ema.safetensors", "a hook's");
  copy_checkpoint(saved, dir / "two");
  CHECK(test::listing(dir / "two/step_3") == test::listing(saved));
  CHECK(checkpoint_fault(dir / "two/step_3").empty());

  std::string bytes = read_file(saved / kModelFile);
  bytes.back() ^= 1;
  write_file_atomic(saved / kModelFile, bytes);
  CHECK_THROWS_WITH(copy_checkpoint(saved, dir / "three"), Contains("is damaged"));
  CHECK(test::listing(dir / "three").empty());
  copy_checkpoint(saved, dir / "two");  // the same state, whole there: it stays
  CHECK(checkpoint_fault(dir / "two/step_3").empty());
}

TEST_CASE("mirror: the newest whole checkpoint of both places is taken", "[checkpoint]") {
  const test::TempDir dir;
  test::FakeModel model;
  test::FakeOptimizer optimizer;
  CheckpointManager own({.dir = dir / "one", .mirror = dir / "two"}), other({.dir = dir / "two"});
  CHECK_FALSE(own.newest().has_value());
  test::save(own, state_at(3), model, optimizer);
  CHECK(own.newest() == dir / "one/step_3");
  test::save(other, state_at(3), model, optimizer);
  CHECK(own.newest() == dir / "one/step_3");
  test::save(other, state_at(5), model, optimizer);
  CHECK(own.newest() == dir / "two/step_5");
  fs::resize_file(dir / "two/step_5" / kModelFile, 20);
  CHECK(own.newest() == dir / "one/step_3");
  fs::resize_file(dir / "one/step_3" / kModelFile, 20);
  CHECK(own.newest() == dir / "two/step_3");
  fs::resize_file(dir / "two/step_3" / kModelFile, 20);
  CHECK_THROWS_WITH(own.newest(), Contains("none of the checkpoints") && Contains("checkpoint.mirror"));
}

TEST_CASE("mirror: a thread copies in turn, skips what is outdated before its turn, and old copies go", "[checkpoint]") {
  const test::TempDir dir;
  test::FakeModel model;
  test::FakeOptimizer optimizer;
  CheckpointOptions options{.dir = dir / "one", .keep_last = 2, .mirror = dir / "two"};
  CheckpointManager checkpoints(options);
  {
    Mirror mirror(options);
    for (const std::int64_t step : {1, 2, 3, 4}) {
      mirror.add(test::save(checkpoints, state_at(step), model, optimizer));
      mirror.wait();
      CHECK(mirror.needed().empty());
    }
    mirror.add(test::save(checkpoints, state_at(4), model, optimizer, "mine"));
  }
  CHECK(test::listing(dir / "two") == "latest mine step_3 step_4");
  CHECK(fs::read_symlink(dir / "two/latest") == "step_4");
}
