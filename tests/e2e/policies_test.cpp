// Which steps are saved and which checkpoints stay, through the real program.

#include <catch2/catch.hpp>

#include <csignal>

#include "e2e/faulty_disk.h"

using namespace kf::test;
using Catch::Contains;

using Names = std::set<std::string>;

TEST_CASE("policies: checkpoint.keep makes checkpoints of its own and keeps them", "[saves]") {
  const FaultyDisk disk;
  disk.toy.write("keep.toml",
                 "extends = 'toy.toml'\n[checkpoint]\ninterval = 5\nkeep_last_n = 1\n"
                 "keep = [{ every = 2, until = 4 }, { every = 3, until = 9 }]\n[run]\nname = 'toy'\n");
  const Finished done = disk.toy.host({"keep.toml"});
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  CHECK(disk.listing() == Names{"latest", "step_10", "step_2", "step_4", "step_6", "step_9"});
  // A run that goes on keeps them, too.
  REQUIRE(disk.toy.host({"keep.toml", "--train.max_steps=12"}).status == 0);
  CHECK(disk.listing() == Names{"latest", "step_12", "step_2", "step_4", "step_6", "step_9"});
}

TEST_CASE("policies: the best checkpoints stay beside the newest, over a restart", "[saves]") {
  const FaultyDisk disk;
  const std::string mode = GENERATE("min", "max");
  const auto go = [&](const std::string& steps, const std::string& best) {
    const Finished done =
        disk.toy.train({"--checkpoint.interval=1", "--eval.interval=1", "--checkpoint.keep_last_n=1", "--checkpoint.best_k=2",
                        "--scheduler.total_steps=10", "--train.max_steps=" + steps, "--checkpoint.best_mode=" + best});
    INFO(done.out << done.err);
    REQUIRE(done.status == 0);
  };
  go("6", "min");
  CHECK(disk.listing() == Names{"latest", "step_5", "step_6"});
  go("10", mode);
  double before = 1e9;
  for (const auto& [step, perplexity] : disk.toy.series("toy", "perplexity")) {  // so the names below are right
    CHECK(std::stod(perplexity) < before);
    before = std::stod(perplexity);
  }
  CHECK(disk.listing() == (mode == "min" ? Names{"latest", "step_10", "step_9"} : Names{"latest", "step_10", "step_5", "step_6"}));
}

TEST_CASE("policies: minutes save beside steps", "[saves]") {
  const FaultyDisk disk;
  const Finished done = disk.toy.train({"--checkpoint.interval=1000", "--checkpoint.interval_minutes=1e-9", "--checkpoint.keep_last_n=0"});
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  CHECK(disk.listing().contains("step_3"));
  CHECK(disk.listing().contains("step_7"));
}

TEST_CASE("policies: two ranks save when the leader's clock says so", "[saves]") {
  const FaultyDisk disk;
  const Finished done =
      disk.toy.host({"--nproc", "2", "toy.toml", "--train.batch_size=2", "--checkpoint.interval=1000", "--checkpoint.interval_minutes=1e-9",
                     "--checkpoint.keep_last_n=0", "--checkpoint.async_mode=async", "--train.run_ahead=2"});
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  CHECK(disk.listing().size() > 3);
  CHECK(disk.listing().contains("step_10"));
}

TEST_CASE("policies: a run that is complete is not saved without checkpoint.on_completion, one that is stopped is", "[saves]") {
  const FaultyDisk disk;
  const Finished done = disk.toy.train({"--checkpoint.interval=4", "--checkpoint.on_completion=false"});
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  CHECK(disk.listing() == Names{"latest", "step_4", "step_8"});
  disk.toy.write("s.lua",
                 "return { extends = 'toy.toml', checkpoint = { interval = 4, on_completion = false }, hooks = { { name = 'end', "
                 "on_step_end = function(ctx) if ctx.step == 6 then ctx:stop('enough') end end } } }");
  REQUIRE(disk.toy.host({"s.lua"}).status == 0);
  CHECK(disk.listing("s") == Names{"latest", "step_4", "step_6"});
}

TEST_CASE("policies: a complete run whose end was not saved is complete when it is started again, and repeats its end when asked",
          "[saves]") {
  const FaultyDisk disk;
  const Words words{"--checkpoint.interval=4", "--checkpoint.on_completion=false"};
  const auto again = [&](const std::string& word) {
    Words more = words;
    more.push_back(word);
    Finished done = disk.toy.train(more);
    UNSCOPED_INFO(done.out << done.err);
    return done;
  };
  REQUIRE(disk.toy.train(words).status == 0);
  const std::string told = disk.toy.read("runs/toy/result.json"), rows = disk.toy.read("runs/toy/metrics.jsonl");
  const Finished complete = again("--metrics.log_interval=1");
  CHECK(complete.status == 0);
  CHECK_THAT(complete.out, Contains("already complete: 10 steps") && Contains("checkpoint.on_completion = false"));
  CHECK(disk.toy.read("runs/toy/result.json") == told);
  CHECK(disk.toy.read("runs/toy/metrics.jsonl") == rows);
  CHECK_THAT(again("--dry-run").out, Contains("is complete already"));
  const Finished repeated = again("--run.go_on=true");
  CHECK(repeated.status == 0);
  CHECK_THAT(repeated.out, Contains("training complete: 10 steps") && Contains("step_8"));
  CHECK_THAT(disk.toy.read("runs/toy/result.json"), Contains("checkpoints/step_8"));
  CHECK_THAT(again("--train.max_steps=12").out, Contains("training complete: 12 steps"));
}

TEST_CASE("policies: a best_metric that no evaluation has is said once, with what there is", "[saves]") {
  const FaultyDisk disk;
  const Finished done = disk.toy.train({"--checkpoint.best_k=2", "--checkpoint.best_metric=eval.nothing", "--eval.interval=2"});
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  const std::size_t at = done.err.find("this evaluation has no eval.nothing");
  REQUIRE(at != std::string::npos);
  CHECK(done.err.find("has no eval.nothing", at + 30) == std::string::npos);
  CHECK_THAT(done.err, Contains("eval.loss, eval.perplexity"));
  CHECK_THAT(disk.toy.train({"--run.name=b", "--checkpoint.best_k=2"}).err, !Contains("checkpoint.best_metric"));
}

TEST_CASE("policies: prune says what it could not remove, and fails", "[saves]") {
  const FaultyDisk disk;
  REQUIRE(disk.toy.train({"--checkpoint.interval=5"}).status == 0);
  const Finished done = kf::test::run(
      disk.toy.command({"checkpoint", "prune", "runs/toy", "--keep-last=1"}),
      disk.options({{"KF_DISK_CALL", "rename"}, {"KF_DISK_FAIL_AT", "1"}, {"KF_DISK_FAILURES", "1000000"}, {"KF_DISK_ERRNO", "30"}}));
  INFO(done.out << done.err);
  CHECK(done.status == 6);
  CHECK_THAT(done.out, Contains("removed 0 of 2"));
  CHECK_THAT(done.err, Contains("1 of 1 checkpoints could not be removed"));
  CHECK(disk.listing().contains("step_5"));
}

TEST_CASE("policies: after a signal a save that could not end in time is not begun", "[saves]") {
  const FaultyDisk disk;
  const int number = GENERATE(SIGTERM, SIGUSR1);
  const bool enough = GENERATE(false, true);  // else the save takes longer than all that is left, which is enough for everything else
  Process process(
      disk.command({"--train.max_steps=1000000", "--checkpoint.interval=1000000", "--checkpoint.keep=[{every = 5, until = 5}]",
                    "--eval.enabled=false", std::string("--train.shutdown_timeout_sec=") + (enough ? "300" : "6")}),
      disk.options({{"KF_DISK_CALL", "fsync"}, {"KF_DISK_PATH", "checkpoints/.step_5."}, {"KF_DISK_DELAY_MS", enough ? "10" : "2000"}}));
  REQUIRE(process.wait_for("saved step_5"));
  REQUIRE(process.wait_for("\n      8   "));  // a step that is not saved
  process.signal(number);
  const Finished done = process.wait();
  INFO(done.out << done.err);
  CHECK(done.status == 75);  // stopped by a signal
  if (enough) {
    CHECK_THAT(done.err, !Contains("is not saved"));
  } else {
    CHECK_THAT(done.err, Contains("is not saved: the last save took") && Contains("train.shutdown_timeout_sec"));
  }
  CHECK(disk.listing().contains("step_5"));
  CHECK(disk.listing().size() == (enough ? 3 : 2));
}

TEST_CASE("policies: rules that cannot be are refused", "[saves]") {
  const FaultyDisk disk;
  disk.toy.write("keep.toml", "extends = 'toy.toml'\n[checkpoint]\nkeep = [{ every = 2 }, { every = 3, until = 9 }]\n");
  const Finished done = disk.toy.host({"config", "check", "keep.toml", "--checkpoint.best_metric=loss"});
  CHECK(done.status == 2);
  CHECK_THAT(done.out + done.err, Contains("checkpoint.keep[0] has no until") && Contains("checkpoint.best_metric ('loss')"));
}

TEST_CASE("policies: a strategy of a script decides what stays of saves in the background, and of their copies", "[saves]") {
  const FaultyDisk disk;
  disk.toy.write("s.lua", R"(
local kf = require('kf')
kf.register.ckpt_strategy('odd', function() return function(step) return step % 2 == 1 end end)
return { extends = 'toy.toml', checkpoint = { interval = 2, keep_last_n = 1, async_mode = 'async', mirror = 'second',
  dyn_ckpt_window = { start = 1, stop = 6, strategy = 'odd' } } }
)");
  // Slow, so that the steps run beside the thread; the copies are not slowed, so that none is left out.
  const Finished done = run(disk.toy.command({"s.lua"}), disk.options({{"KF_DISK_CALL", "fsync"}, {"KF_DISK_DELAY_MS", "20"}}));
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  CHECK(disk.listing("s") == Names{"latest", "step_1", "step_10", "step_3", "step_5"});
  CHECK(FaultyDisk::names_in(disk.toy / "second/runs/s") ==
        Names{".lock", "latest", "mirror.json", "step_1", "step_10", "step_3", "step_5"});
}
