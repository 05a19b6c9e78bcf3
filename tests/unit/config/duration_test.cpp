// Durations: steps or a share of the schedule.

#include "config/show/emit.h"
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

TEST_CASE("config: one duration and a list of one are told apart, in files, on the command line and in snapshots", "[config]") {
  const auto cycles = [](const std::string& text) { return good(load_toml("[scheduler]\ncycles = " + text + "\n")).scheduler.cycles; };
  using List = std::vector<config::Duration>;
  CHECK(cycles("3") == config::Durations(3));
  CHECK(cycles("[300]") == config::Durations(List{300}));
  CHECK(cycles("[100, 0.5, 90000.0]") == config::Durations(List{100, config::Duration::of_share(0.5), 90000}));
  CHECK(good(load_cli({"--scheduler.cycles=100,300"})).scheduler.cycles == config::Durations(List{100, 300}));
  CHECK(good(load_cli({"--scheduler.cycles=[0.25]"})).scheduler.cycles == config::Durations(List{config::Duration::of_share(0.25)}));
  CHECK(good(load_cli({"--scheduler.cycle_length=0.25"})).scheduler.cycle_length == config::Duration::of_share(0.25));
  CHECK(problem(load_toml("[scheduler]\ncycles = [1.5]\n")) ==
        "scheduler.cycles[0] (1.5) is neither a number of steps nor a share in (0, 1]");
  CHECK(problem(load_toml("[scheduler]\ncycles = [100, 0]\n")) == "scheduler.cycles[1] (0) must be positive");
  CHECK(problem(load_toml("[scheduler]\ncycles = \"many\"\n")).find("scheduler.cycles ('many') is not an integer") == 0);
  for (const char* text : {"cycles = 3\n", "cycles = [1000, 0.5]\n", "cycle_length = 0.25\n", "cycle_length = [1000, 1000]\n"}) {
    const config::Config before = good(load_toml(std::string("[scheduler]\n") + text));
    CHECK(good(load_toml(config::to_toml(before))).scheduler == before.scheduler);
  }
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
