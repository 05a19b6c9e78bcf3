// Saves in the background and on disks that fail, through the real program.

#include <catch2/catch.hpp>

#include <csignal>

#include "e2e/faulty_disk.h"

using namespace kf::test;
using Catch::Contains;

namespace {

const Words kEveryTwo{"--checkpoint.interval=2", "--checkpoint.keep_last_n=0"};

Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

void check_same_files(const FaultyDisk& disk, const std::string& one, const std::string& other, const std::string& step) {
  for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
    INFO(other << " " << step << " " << file);
    const std::string bytes = FaultyDisk::bytes(disk.checkpoints(one) / step / file);
    CHECK(!bytes.empty());
    CHECK(bytes == FaultyDisk::bytes(disk.checkpoints(other) / step / file));
  }
}

}  // namespace

TEST_CASE("saves: written in the background they hold what the training thread would have written, to the bit", "[saves]") {
  const FaultyDisk disk;
  const std::string more = GENERATE("--optimizer.name=adamw", "--optimizer.name=schedule_free_adamw", "--averaging.type=ema");
  disk.toy.trained(with(kEveryTwo, {"--run.name=plain", more}));
  Words modes{"async"};
  if (more == "--optimizer.name=adamw") {
    modes.push_back("async_with_pinned_mem");
  }
  for (const std::string& mode : modes) {
    // Slow enough that the weights move on while they are written.
    const Finished done = disk.run(with(kEveryTwo, {"--run.name=" + mode, "--checkpoint.async_mode=" + mode, more}),
                                   {{"KF_DISK_CALL", "fsync"}, {"KF_DISK_DELAY_MS", "30"}});
    INFO(done.out << done.err);
    REQUIRE(done.status == 0);
    for (const char* step : {"step_2", "step_4", "step_6", "step_8", "step_10"}) {
      check_same_files(disk, "plain", mode, step);
    }
    CHECK(fs::read_symlink(disk.checkpoints(mode) / "latest") == "step_10");
    CHECK(disk.listing(mode) == disk.listing("plain"));
  }
}

TEST_CASE("saves: steps go on while a slow disk is written to, and the next save says how long it waited", "[saves]") {
  const FaultyDisk disk;
  const std::map<std::string, std::string> slow{{"KF_DISK_CALL", "fsync"}, {"KF_DISK_DELAY_MS", "150"}};
  const Finished plain = disk.run({"--run.name=plain"}, slow);
  REQUIRE(plain.status == 0);
  CHECK_THAT(plain.err, !Contains("waited"));
  const Finished behind = disk.run({"--run.name=behind", "--checkpoint.async_mode=async"}, slow);
  INFO(behind.out << behind.err);
  REQUIRE(behind.status == 0);
  CHECK_THAT(behind.out, Contains("a copy for saves"));
  CHECK_THAT(plain.out, !Contains("a copy for saves"));
  CHECK_THAT(behind.err, Contains("step 10: waited") && Contains("the disk is slower than saves follow each other"));
  // The table of steps has gone on before the first checkpoint is there.
  CHECK(plain.out.find("saved step_5") < plain.out.find("\n    6 "));
  CHECK(behind.out.find("saved step_5") > behind.out.find("\n    6 "));
}

TEST_CASE("saves: a kill in the middle of a save in the background leaves the earlier checkpoint, and the run goes on from it", "[saves]") {
  const FaultyDisk disk;
  disk.toy.trained({"--run.name=straight"});
  const Words words{"--checkpoint.async_mode=async_with_pinned_mem", "--checkpoint.interval=1"};
  for (int kill = 0; kill < 3; ++kill) {
    Process process(disk.command(words), disk.options({{"KF_DISK_CALL", "fsync"}, {"KF_DISK_DELAY_MS", "100"}}));
    REQUIRE(process.wait_for("saved step_" + std::to_string(2 * kill + 1)));
    process.signal(SIGKILL);
    CHECK(process.wait().status == 128 + SIGKILL);
    CHECK(fs::exists(disk.checkpoints() / "latest" / "state.json"));
  }
  const Finished done = disk.toy.train(words);
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  CHECK(disk.toy.series("toy", "loss") == disk.toy.series("straight", "loss"));
  check_same_files(disk, "straight", "toy", "step_10");
}

TEST_CASE("saves: a disk that fails at any call ends the run with the reason, and the earlier checkpoint is untouched", "[saves]") {
  const FaultyDisk disk;
  const std::string mode = GENERATE("disabled", "async");
  const std::string call = GENERATE("write", "fsync", "rename");
  const Words words{"--checkpoint.async_mode=" + mode, "--checkpoint.interval=5"};
  disk.toy.trained({"--checkpoint.interval=5", "--train.max_steps=5", "--scheduler.total_steps=10"});
  const std::string before = FaultyDisk::bytes(disk.checkpoints() / "step_5/state.json");
  // Every call of one mode, and of the other, which makes the same ones in another thread, every third; a write for each tensor.
  const int stride = (call == "write" ? 8 : 1) * (mode == "async" ? 3 : 1);
  int failed = 0;
  for (int at = 1; at < 300; at += stride) {
    const Finished done =
        disk.run(words, {{"KF_DISK_CALL", call}, {"KF_DISK_FAIL_AT", std::to_string(at)}, {"KF_DISK_ERRNO", at % 2 == 0 ? "5" : "28"}});
    INFO(mode << " " << call << " " << at << "\n" << done.out << done.err);
    if (done.status == 0) {
      break;  // so many calls a save does not make
    }
    ++failed;
    CHECK(done.status == 6);
    CHECK_THAT(done.err, Contains("the save of step 10 failed") && Contains(at % 2 == 0 ? "Input/output error" : "No space left"));
    CHECK(FaultyDisk::bytes(disk.checkpoints() / "step_5/state.json") == before);
    CHECK(fs::exists(disk.checkpoints() / "latest" / "state.json"));
    for (const std::string& name : disk.listing()) {
      CHECK_THAT(name, !Catch::StartsWith(".step_10"));
    }
    fs::remove_all(disk.checkpoints() / "step_10");  // where the link alone had failed
    fs::remove(disk.checkpoints() / "latest");
    fs::create_directory_symlink("step_5", disk.checkpoints() / "latest");
  }
  CHECK(failed >= 2);
  CHECK(fs::read_symlink(disk.checkpoints() / "latest") == "step_10");
}

TEST_CASE("saves: with checkpoint.on_error = 'warn' the run goes on, and the next save is tried again", "[saves]") {
  const FaultyDisk disk;
  const std::string mode = GENERATE("disabled", "async", "async_with_pinned_mem");
  const Words words = with(kEveryTwo, {"--checkpoint.async_mode=" + mode, "--checkpoint.on_error=warn"});
  const Finished done = disk.run(words, {{"KF_DISK_CALL", "fsync"}, {"KF_DISK_FAIL_AT", "13"}, {"KF_DISK_ERRNO", "28"}});
  INFO(done.out << done.err);
  CHECK(done.status == 0);
  CHECK_THAT(done.err, Contains("the save of step 4 failed") && Contains("No space left") && Contains("the run goes on"));
  CHECK(disk.listing() == std::set<std::string>{"latest", "step_10", "step_2", "step_6", "step_8"});
}

TEST_CASE("saves: a run whose end cannot be saved fails, whatever checkpoint.on_error says", "[saves]") {
  const FaultyDisk disk;
  const std::string mode = GENERATE("disabled", "async");
  const Words words = with(kEveryTwo, {"--checkpoint.async_mode=" + mode, "--checkpoint.on_error=warn"});
  const Finished done =
      disk.run(words, {{"KF_DISK_CALL", "write"}, {"KF_DISK_FAIL_AT", "100"}, {"KF_DISK_FAILURES", "100000"}, {"KF_DISK_ERRNO", "28"}});
  INFO(done.out << done.err);
  CHECK(done.status == 6);
  CHECK_THAT(done.err, Contains("could not be saved"));
  CHECK(fs::exists(disk.checkpoints() / "latest" / "state.json"));
  const Finished again = disk.toy.train(words);
  INFO(again.out << again.err);
  CHECK(again.status == 0);
  CHECK(fs::read_symlink(disk.checkpoints() / "latest") == "step_10");
}

TEST_CASE("saves: hooks learn of a save when it is complete", "[saves]") {
  const FaultyDisk disk;
  disk.toy.write("s.lua", R"(
local seen = io.open('seen.txt', 'w')
return { extends = 'toy.toml', checkpoint = { interval = 2, async_mode = 'async' }, hooks = { { name = 'look',
  on_checkpoint_save = function(ctx, path)
    local file = assert(io.open(path .. '/state.json'))
    file:close()
    seen:write(path:match('[^/]*$'), '\n')
    seen:flush()
  end,
  on_step_end = function(ctx) if ctx.step == 3 then ctx:request_save('mine') end end } } }
)");
  Options options = disk.options({{"KF_DISK_CALL", "fsync"}, {"KF_DISK_DELAY_MS", "20"}});
  const Finished done = run(disk.toy.command({"s.lua"}), options);
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  CHECK(disk.toy.read("seen.txt") == "step_2\nmine\nstep_4\nstep_6\nstep_8\nstep_10\n");
}

TEST_CASE("saves: the average of the hook weight_ema is that of the save's own step", "[saves]") {
  const FaultyDisk disk;
  disk.toy.write("s.lua",
                 "return { extends = 'toy.toml', checkpoint = { interval = 2, keep_last_n = 0 }, "
                 "hooks = { require('kf.hooks.weight_ema').new({ decay = 0.9 }) } }");
  const auto go = [&](const std::string& mode) {
    const Finished done = run(disk.toy.command({"s.lua", "--run.name=" + mode, "--checkpoint.async_mode=" + mode}),
                              disk.options({{"KF_DISK_CALL", "fsync"}, {"KF_DISK_DELAY_MS", "20"}}));
    INFO(done.out << done.err);
    REQUIRE(done.status == 0);
  };
  go("disabled");
  go("async");
  for (const char* step : {"step_2", "step_6", "step_10"}) {
    const std::string one = FaultyDisk::bytes(disk.checkpoints("disabled") / step / "ema.safetensors");
    CHECK(!one.empty());
    CHECK(one == FaultyDisk::bytes(disk.checkpoints("async") / step / "ema.safetensors"));
  }
}

TEST_CASE("saves: two ranks save in the background beside their steps, and a disk that fails on one is known to both", "[saves]") {
  const FaultyDisk disk;
  const auto go = [&](const std::string& name, const Words& more, std::map<std::string, std::string> env) {
    Words words{"--nproc",
                "2",
                "toy.toml",
                "--run.name=" + name,
                "--train.batch_size=2",
                "--distributed.zero_stage=2",
                "--distributed.nccl_timeout_sec=60"};
    return run(disk.toy.command(with(words, with(kEveryTwo, more))), disk.options(std::move(env)));
  };
  const Finished plain = go("plain", {}, {});
  INFO(plain.out << plain.err);
  REQUIRE(plain.status == 0);
  const Finished behind =
      go("behind", {"--checkpoint.async_mode=async_with_pinned_mem"}, {{"KF_DISK_CALL", "fsync"}, {"KF_DISK_DELAY_MS", "20"}});
  INFO(behind.out << behind.err);
  REQUIRE(behind.status == 0);
  for (const char* file :
       {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "optimizer-00002-of-00002.safetensors"}) {
    CHECK(FaultyDisk::bytes(disk.checkpoints("plain") / "step_6" / file) ==
          FaultyDisk::bytes(disk.checkpoints("behind") / "step_6" / file));
  }
  CHECK(disk.toy.series("plain", "loss") == disk.toy.series("behind", "loss"));
  // The second rank's file alone.
  const std::map<std::string, std::string> fails{
      {"KF_DISK_CALL", "fsync"}, {"KF_DISK_PATH", "optimizer-00002-of"}, {"KF_DISK_FAIL_AT", "2"}};
  const Finished warned = go("warned", {"--checkpoint.async_mode=async", "--checkpoint.on_error=warn"}, fails);
  INFO(warned.out << warned.err);
  CHECK(warned.status == 0);
  CHECK_THAT(warned.err, Contains("the save of step 4 failed: rank 1: "));
  CHECK(disk.listing("warned") == std::set<std::string>{"latest", "step_10", "step_2", "step_6", "step_8"});
  const Finished stopped = go("stopped", {"--checkpoint.async_mode=async"}, fails);
  INFO(stopped.out << stopped.err);
  CHECK(stopped.status == 6);
  CHECK(disk.listing("stopped") == std::set<std::string>{"latest", "step_2"});
}

TEST_CASE("saves: a folder of checkpoints that is gone or read-only for a while is a warning where checkpoint.on_error says so",
          "[saves]") {
  const FaultyDisk disk;
  const std::string on_error = GENERATE("warn", "stop");
  disk.toy.write("s.lua", R"(
return { extends = 'toy.toml', checkpoint = { dir = 'elsewhere', interval = 2, keep_last_n = 0, on_error = ')" +
                              on_error + R"(' }, hooks = { { name = 'mount', on_step_end = function(ctx)
  if ctx.step == 3 then os.rename('elsewhere', 'gone') io.open('elsewhere', 'w'):close() end
  if ctx.step == 5 then os.remove('elsewhere') os.rename('gone', 'elsewhere') end
end } } }
)");
  const Finished done = run(disk.toy.command({"s.lua"}), disk.options({}));
  INFO(done.out << done.err);
  CHECK_THAT(done.err, Contains("the save of step 4 failed"));
  if (on_error == "warn") {
    CHECK(done.status == 0);
    CHECK(FaultyDisk::names_in(disk.toy / "elsewhere") ==
          std::set<std::string>{".lock", "latest", "step_10", "step_2", "step_6", "step_8"});
  } else {
    CHECK(done.status == 6);
    CHECK(fs::exists(disk.toy / "gone/latest/state.json"));
  }
}
