// H7, H13, H15, H36, H37: evaluation, the first update, resume and the end, through kf-host itself.

#include <catch2/catch.hpp>
#include <cmath>

#include "e2e/toy_text.h"

namespace kf::cases {
namespace {

const std::string kEval = "[eval]\nenabled = true\ninterval = 1\nsteps = 100\ndataset_path = \"held_out\"\n";

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

void require_ok(const test::Finished& finished) {
  CAPTURE(finished.out, finished.err);
  REQUIRE(finished.status == 0);
}

}  // namespace

TEST_CASE("program: the evaluation loss does not depend on the accumulation", "[cases][H7]") {
  const Workbench bench(kEval);
  std::vector<double> losses;
  for (const char* accumulation : {"1", "4", "7"}) {
    const std::string folder = std::string("accumulation_") + accumulation;
    // A warm-up from rate 0: after the first update the weights are those of the start.
    require_ok(bench.run_in(
        folder, {"--train.max_steps=1", "--scheduler.warmup_steps=10", std::string("--train.grad_accum_steps=") + accumulation}));
    REQUIRE_FALSE(bench.evals(folder).empty());
    losses.push_back(real(bench.evals(folder).back(), "loss"));
  }
  CHECK(losses[0] == losses[1]);
  CHECK(losses[0] == losses[2]);
  CHECK(losses[0] == Approx(std::log(97.0)).epsilon(0.05));
}

TEST_CASE("program: evaluating changes nothing of the training", "[cases][H7]") {
  const std::string optimizer = GENERATE("adamw", "schedule_free_adamw");
  const Workbench bench(kEval);
  require_ok(bench.run_in("with", {"--optimizer.name=" + optimizer}));
  require_ok(bench.run_in("without", {"--optimizer.name=" + optimizer, "--eval.enabled=false"}));
  CHECK(column(bench.steps("with"), "loss") == column(bench.steps("without"), "loss"));
  CHECK(
      same_tensors(bench.checkpoint("step_7", "with") / "model.safetensors", bench.checkpoint("step_7", "without") / "model.safetensors"));
}

TEST_CASE("program: cross entropy, z-loss and total are logged apart", "[cases][H8]") {
  const Workbench bench(kEval);
  require_ok(bench.run_in("plain", {"--train.max_steps=1", "--scheduler.warmup_steps=10"}));
  require_ok(bench.run_in("with_z", {"--train.max_steps=1", "--scheduler.warmup_steps=10", "--train.z_loss_weight=1e-2"}));
  const config::Table plain = bench.steps("plain").front(), with_z = bench.steps("with_z").front();
  CHECK(real(with_z, "ce") == real(plain, "ce"));
  CHECK(real(with_z, "z_loss") > 0);
  CHECK(real(with_z, "loss") == Approx(real(with_z, "ce") + real(with_z, "z_loss")));
  CHECK(real(bench.evals("with_z").back(), "loss") == real(bench.evals("plain").back(), "loss"));
}

TEST_CASE("program: inclusive endpoints move the weights in the first update and log the rates of the formula", "[cases][H13]") {
  const Workbench bench;
  const std::vector<std::string> schedule{"--train.max_steps=10", "--scheduler.name=cosine", "--scheduler.warmup_steps=4",
                                          "--checkpoint.interval=1", "--checkpoint.keep_last_n=0"};
  std::vector<std::string> inclusive = schedule;
  inclusive.push_back("--scheduler.endpoints=inclusive");
  require_ok(bench.run_in("exclusive", schedule));
  require_ok(bench.run_in("inclusive", inclusive));
  const std::vector<double> expected{0.25, 0.5, 0.75, 1, 0.9397, 0.775, 0.55, 0.325, 0.1603, 0.1};
  const std::vector<double> rates = column(bench.steps("inclusive"), "lr");
  REQUIRE(rates.size() == expected.size());
  for (std::size_t s = 0; s < expected.size(); ++s) {
    CHECK(rates[s] == Approx(1e-3 * expected[s]).margin(5e-8));
  }
  CHECK(column(bench.steps("exclusive"), "lr").front() == 0.0);
  // The same start, one update: with rate 0 the weights are still those of the start.
  CHECK_FALSE(same_tensors(bench.checkpoint("step_1", "inclusive") / "model.safetensors",
                           bench.checkpoint("step_1", "exclusive") / "model.safetensors"));
}

TEST_CASE("program: after a resume the settings decide the learning rate, and the change is said", "[cases][H15]") {
  const Workbench bench;
  require_ok(bench.run({"--train.max_steps=10"}));
  bench.cut(5);
  const test::Finished resumed = bench.run({"--train.max_steps=8", "--optimizer.lr=1e-4", "--optimizer.weight_decay=0.3"});
  require_ok(resumed);
  const std::string said = resumed.out + resumed.err;
  CAPTURE(said);
  CHECK(has(said, "optimizer.lr 0.001 (checkpoint)"));
  CHECK(has(said, "0.0001 (now)"));
  CHECK(has(said, "optimizer.weight_decay 0.1 (checkpoint)"));
  CHECK(has(said, "train.max_steps 10 (checkpoint)"));
  const std::vector<config::Table> rows = bench.steps();
  CHECK(column(rows, "step") == std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(column(rows, "lr") == std::vector<double>{1e-3, 1e-3, 1e-3, 1e-3, 1e-3, 1e-4, 1e-4, 1e-4});
}

TEST_CASE("program: a schedule after a resume is a function of the step alone", "[cases][H15]") {
  const Workbench bench;
  const std::vector<std::string> schedule{"--train.max_steps=12", "--scheduler.name=linear", "--scheduler.warmup_steps=3"};
  require_ok(bench.run_in("straight", schedule));
  // The first part knows a shorter run: its own rates bend earlier, but from the resume on they are those of the longer one.
  require_ok(bench.run_in("resumed", {"--train.max_steps=5", "--scheduler.name=linear", "--scheduler.warmup_steps=3"}));
  require_ok(bench.run_in("resumed", schedule));
  const std::vector<double> straight = column(bench.steps("straight"), "lr"), resumed = column(bench.steps("resumed"), "lr");
  REQUIRE(resumed.size() == 12);
  CHECK(std::vector<double>(resumed.begin() + 5, resumed.end()) == std::vector<double>(straight.begin() + 5, straight.end()));
}

TEST_CASE("program: a run killed after a checkpoint goes on as if nothing had happened, with one row a step", "[cases][H36]") {
  const std::string optimizer = GENERATE("adamw", "muon", "schedule_free_adamw");
  CAPTURE(optimizer);
  const Workbench bench(kEval);
  const std::vector<std::string> arguments{"--train.max_steps=10", "--optimizer.name=" + optimizer, "--train.mixed_precision=bf16"};
  require_ok(bench.run_in("straight", arguments));
  require_ok(bench.run_in("killed", arguments));
  bench.cut(5, "killed");
  require_ok(bench.run_in("killed", arguments));
  CHECK(column(bench.steps("killed"), "step") == std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  CHECK(column(bench.steps("killed"), "loss") == column(bench.steps("straight"), "loss"));
  CHECK(column(bench.evals("killed"), "loss") == column(bench.evals("straight"), "loss"));
  CHECK(same_tensors(bench.checkpoint("step_10", "killed") / "model.safetensors",
                     bench.checkpoint("step_10", "straight") / "model.safetensors"));
  CHECK(same_tensors(bench.checkpoint("step_10", "killed") / "optimizer.safetensors",
                     bench.checkpoint("step_10", "straight") / "optimizer.safetensors"));
}

TEST_CASE("program: five steps, a resume and five more equal ten straight ones bit for bit", "[cases][H36]") {
  const std::string optimizer = GENERATE("adamw", "lion", "muon", "schedule_free_adamw", "soap", "kron", "sophia_h");
  CAPTURE(optimizer);
  const Workbench bench;
  std::vector<std::string> arguments{"--optimizer.name=" + optimizer, "--train.grad_accum_steps=2"};
  if (optimizer == "sophia_h") {
    arguments.emplace_back("--optimizer.sophia_h.update_interval=3");  // estimates on both sides of the resume
  }
  std::vector<std::string> half = arguments, whole = arguments;
  half.emplace_back("--train.max_steps=5");
  whole.emplace_back("--train.max_steps=10");
  require_ok(bench.run_in("straight", whole));
  require_ok(bench.run_in("resumed", half));
  require_ok(bench.run_in("resumed", whole));
  CHECK(column(bench.steps("resumed"), "loss") == column(bench.steps("straight"), "loss"));
  CHECK(column(bench.steps("resumed"), "grad_norm") == column(bench.steps("straight"), "grad_norm"));
  for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
    CAPTURE(file);
    CHECK(same_tensors(bench.checkpoint("step_10", "resumed") / file, bench.checkpoint("step_10", "straight") / file));
  }
  // Weights alone are another run.
  std::vector<std::string> bare = arguments;
  bare.emplace_back("--train.max_steps=5");
  bare.push_back("--checkpoint.init_from=" + (bench.checkpoint("step_5", "resumed") / "model.safetensors").string());
  require_ok(bench.run_in("bare", bare));
  CHECK_FALSE(same_tensors(bench.checkpoint("step_5", "bare") / "model.safetensors",
                           bench.checkpoint("step_10", "straight") / "model.safetensors"));
}

TEST_CASE("program: the last step is saved, a finished run is left alone, more steps go on from the end", "[cases][H37]") {
  const Workbench bench(kEval);
  require_ok(bench.run());
  CHECK(fs::exists(bench.checkpoint("step_5")));
  CHECK(fs::exists(bench.checkpoint("step_7")));
  CHECK(fs::canonical(bench.checkpoint("latest")) == fs::canonical(bench.checkpoint("step_7")));

  const std::string before = bench.listing();
  const test::Finished again = bench.run();
  require_ok(again);
  CHECK(has(again.out + again.err, "already complete"));
  CHECK(bench.listing() == before);

  require_ok(bench.run({"--train.max_steps=9"}));
  CHECK(fs::canonical(bench.checkpoint("latest")) == fs::canonical(bench.checkpoint("step_9")));
  CHECK(column(bench.steps(), "step") == std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8, 9});
}

TEST_CASE("program: a finished run with other settings, and another model, stop and name run.fresh", "[cases][H37]") {
  const Workbench bench;
  require_ok(bench.run());
  const std::string before = bench.listing();
  const std::string change = GENERATE("--optimizer.lr=5e-4", "--model.n_layers=3", "--train.max_steps=3");
  CAPTURE(change);
  const test::Finished finished = bench.run({change});
  CAPTURE(finished.out, finished.err);
  CHECK(finished.status != 0);
  CHECK(has(finished.out + finished.err, "run.fresh"));
  CHECK(bench.listing() == before);
}

}  // namespace kf::cases
