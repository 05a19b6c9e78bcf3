// Durations: steps or a share of the schedule.

#include "config/emit.h"
#include "job.h"

namespace kf::test {

TEST_CASE("config: an integer is steps, a float up to 1 a share, larger floats must be whole", "[config]") {
  const auto warmup = [](const std::string& text) {
    return good(load_toml("[scheduler]\nwarmup_steps = " + text + "\n")).scheduler.warmup_steps;
  };
  CHECK(warmup("1") == config::Duration(1));
  CHECK(warmup("1.0") == config::Duration::of_share(1));
  CHECK(warmup("0.1") == config::Duration::of_share(0.1));
  CHECK(warmup("0.0") == config::Duration(0));
  CHECK(warmup("100.0") == config::Duration(100));
  CHECK(good(load_cli({"--scheduler.warmup_steps=0.25"})).scheduler.warmup_steps.of(200) == 50);
  CHECK(good(load_cli({"--scheduler.warmup_steps=1e2"})).scheduler.warmup_steps == config::Duration(100));
  CHECK(problem(load_toml("[scheduler]\nwarmup_steps = 1.5\n")) ==
        "scheduler.warmup_steps (1.5) is neither a number of steps nor a share in (0, 1]");
  CHECK(problem(load_toml("[scheduler]\nwarmup_steps = -0.5\n")).find("scheduler.warmup_steps (-0.5) is neither") == 0);
  CHECK(problem(load_toml("[scheduler]\nwarmup_steps = -1\n")) == "scheduler.warmup_steps (-1) must be non-negative (>= 0)");
  CHECK(problem(load_toml("[scheduler]\ndecay_steps = \"half\"\n")).find("scheduler.decay_steps ('half') is not an integer") == 0);
}

TEST_CASE("config: a duration is the same after a round trip through the snapshot", "[config]") {
  const config::Config before =
      good(load_toml("[scheduler]\nwarmup_steps = 0.25\ndecay_steps = 0.3\nstable_steps = 1\nname = \"wsd\"\n[train]\nmax_steps = 10\n"
                     "[optimizer]\nlr = 1e-3\n"));
  const config::Config after = good(load_toml(config::to_toml(before)));
  CHECK(after.scheduler == before.scheduler);
  CHECK(config::to_toml(before).find("warmup_steps = 0.25\n") != std::string::npos);
}

TEST_CASE("config: a snapshot of a global batch or a batch schedule loads again", "[config]") {
  const std::string text = GENERATE("[train]\nbatch_size = 4\nglobal_batch_size = 16\n",
                                    "[train]\nbatch_size = 4\n[[train.batch_schedule]]\nstart = 0\nsize = 8\n");
  const config::Config before = good(load_toml(text));
  const config::Loaded again = load_toml(config::to_toml(before));
  CHECK(good(again).train == before.train);
  CHECK(again.report.warnings.empty());
}

}  // namespace kf::test
