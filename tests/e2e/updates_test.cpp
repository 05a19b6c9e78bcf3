// What an update consists of over a run: target loss, running averages, batch sizes that change, all with a resume inside.

#include <catch2/catch.hpp>
#include <cmath>
#include <sstream>

#include "e2e/toy_text.h"

namespace kf::cases {
namespace {

const std::string kEval = "[eval]\nenabled = true\ninterval = 1\nsteps = 3\ndataset_path = \"held_out\"\n";

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

void require_ok(const test::Finished& finished) {
  CAPTURE(finished.out, finished.err);
  REQUIRE(finished.status == 0);
}

/// Runs to `half` steps, then on to `whole`, and straight to `whole`: both end with the same bits.
void same_with_a_stop(const Workbench& bench, std::vector<std::string> arguments, int half, int whole) {
  const auto until = [&](int steps) {
    std::vector<std::string> all = arguments;
    all.push_back("--train.max_steps=" + std::to_string(steps));
    return all;
  };
  require_ok(bench.run_in("straight", until(whole)));
  require_ok(bench.run_in("stopped", until(half)));
  require_ok(bench.run_in("stopped", until(whole)));
  CHECK(column(bench.steps("stopped"), "loss") == column(bench.steps("straight"), "loss"));
  const std::string last = "step_" + std::to_string(whole);
  for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
    CAPTURE(file);
    CHECK(same_tensors(bench.checkpoint(last, "stopped") / file, bench.checkpoint(last, "straight") / file));
  }
}

}  // namespace

TEST_CASE("program: an evaluation that reaches eval.target_loss ends the run with a checkpoint, and says so", "[cases]") {
  const Workbench bench(kEval);
  require_ok(bench.run_in("all", {"--train.max_steps=12", "--optimizer.lr=1e-2"}));
  const std::vector<double> losses = column(bench.evals("all"), "loss");
  REQUIRE(losses.size() >= 6);
  REQUIRE(losses[4] < losses[0]);
  const double target = losses[4];
  std::size_t reached = 0;
  while (losses[reached] > target) {
    ++reached;
  }
  std::ostringstream text;
  text.precision(17);
  text << target;
  const test::Finished finished =
      bench.run_in("aimed", {"--train.max_steps=12", "--optimizer.lr=1e-2", "--eval.target_loss=" + text.str()});
  require_ok(finished);
  CAPTURE(finished.out, finished.err);
  CHECK(has(finished.out + finished.err, "reached eval.target_loss"));
  CHECK(bench.evals("aimed").size() == reached + 1);
  CHECK(bench.steps("aimed").size() == reached + 1);
  CHECK(fs::exists(bench.checkpoint("step_" + std::to_string(reached + 1), "aimed") / "model.safetensors"));
}

TEST_CASE("program: a running average of the weights is evaluated beside them, and a stop does not disturb it", "[cases]") {
  const std::string type = GENERATE("ema", "ema_decay_sqrt");
  CAPTURE(type);
  const Workbench bench(kEval + "[averaging]\ntype = \"" + type + "\"\nbeta = 0.5\nswitch_step = 4\ndecay_steps = 4\n");
  same_with_a_stop(bench, {"--optimizer.lr=1e-2"}, 5, 9);
  const std::vector<double> straight = column(bench.evals("straight"), "ema"), stopped = column(bench.evals("stopped"), "ema");
  CHECK(straight == stopped);
  REQUIRE(straight.size() == 9);
  // The average lags behind weights that still learn.
  CHECK(straight[8] > column(bench.evals("straight"), "loss")[8]);
  CHECK(straight[8] < straight[0]);
}

TEST_CASE("program: steps that run ahead have the numbers, rows and weights of steps that are read at once", "[cases]") {
  // Saves, evaluations and a watched step lie between them; max_steps is neither.
  const Workbench bench("[eval]\nenabled = true\ninterval = 5\nsteps = 3\ndataset_path = \"held_out\"\n");
  const std::vector<std::string> job = {"--optimizer.lr=1e-2",         "--train.mixed_precision=fp32", "--train.max_steps=13",
                                        "--checkpoint.interval=4",     "--checkpoint.keep_last_n=9",   "--metrics.log_interval=1",
                                        "--metrics.watch=[\"grads\"]", "--metrics.watch_interval=7"};
  const auto with = [&](const std::string& run, int ahead, std::vector<std::string> more = {}) {
    std::vector<std::string> all = job;
    all.push_back("--train.run_ahead=" + std::to_string(ahead));
    all.insert(all.end(), more.begin(), more.end());
    const test::Finished finished = bench.run_in(run, all);
    require_ok(finished);
    return finished.out + finished.err;
  };
  with("at_once", 0);
  CHECK_FALSE(has(with("ahead", 3), "has no effect"));
  for (const char* number : {"step", "loss", "grad_norm", "tokens", "lr"}) {
    CAPTURE(number);
    CHECK(column(bench.steps("ahead"), number) == column(bench.steps("at_once"), number));
  }
  CHECK(column(bench.evals("ahead"), "loss") == column(bench.evals("at_once"), "loss"));
  for (const char* step : {"step_4", "step_12", "step_13"}) {
    for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
      CAPTURE(step, file);
      CHECK(same_tensors(bench.checkpoint(step, "ahead") / file, bench.checkpoint(step, "at_once") / file));
    }
  }
  CHECK(has(with("lion", 3, {"--optimizer.name=lion"}), "train.run_ahead = 3 has no effect"));
}

TEST_CASE("program: train.batch_schedule changes the tokens of an update, also across a stop", "[cases]") {
  const Workbench bench(
      "[[train.batch_schedule]]\nstart = 0\nsize = 2\n[[train.batch_schedule]]\nstart = 3\nsize = 6\n[[train.batch_schedule]]\nstart = "
      "7\nsize = 4\n");
  same_with_a_stop(bench, {}, 5, 9);
  std::vector<double> tokens = column(bench.steps("straight"), "tokens");
  REQUIRE(tokens.size() == 9);
  const std::vector<double> sizes{2, 2, 2, 6, 6, 6, 6, 4, 4};
  double sum = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    CAPTURE(i);
    sum += sizes[i] * 32;
    CHECK(tokens[i] == sum);
  }
}

TEST_CASE("program: train.global_batch_size is so many micro-batches, to the bit", "[cases]") {
  const Workbench bench;
  require_ok(bench.run_in("accumulated", {"--train.max_steps=4", "--train.grad_accum_steps=3"}));
  require_ok(bench.run_in("global", {"--train.max_steps=4", "--train.global_batch_size=6"}));
  CHECK(column(bench.steps("global"), "loss") == column(bench.steps("accumulated"), "loss"));
  CHECK(same_tensors(bench.checkpoint("step_4", "global") / "model.safetensors",
                     bench.checkpoint("step_4", "accumulated") / "model.safetensors"));
  const test::Finished odd = bench.run_in("odd", {"--train.global_batch_size=5", "--train.allow_nondivisible_batch=false"});
  CHECK(odd.status == 2);
  CHECK(has(odd.err, "train.global_batch_size"));
}

}  // namespace kf::cases
