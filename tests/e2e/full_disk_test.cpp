// A disk under the run's folder that is full for a while, or fails, while checkpoints lie elsewhere.

#include <catch2/catch.hpp>

#include <sys/mount.h>

#include <cerrno>
#include <cstring>

#include "e2e/faulty_disk.h"

using namespace kf::test;
using Catch::Contains;

namespace {

std::string rows(const FaultyDisk& disk, const std::string& run = "toy") {
  return FaultyDisk::bytes(disk.toy / "runs" / run / "metrics.jsonl");
}

std::map<std::string, std::string> failing(const std::string& path, int at, int failures) {
  return {{"KF_DISK_CALL", "write"},
          {"KF_DISK_PATH", path},
          {"KF_DISK_FAIL_AT", std::to_string(at)},
          {"KF_DISK_FAILURES", std::to_string(failures)},
          {"KF_DISK_ERRNO", "28"}};
}

const Words kEachStep{"--metrics.log_interval=1", "--checkpoint.interval=4"};

Words with(const Words& more) {
  Words out = kEachStep;
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

void check_rows(const FaultyDisk& disk) {
  for (const char* key : {"loss", "tokens"}) {
    CHECK(disk.toy.series("toy", key) == disk.toy.series("straight", key));
  }
  int count = 0;
  for (const char c : rows(disk)) {
    count += c == '\n' ? 1 : 0;
  }
  int expected = 0;
  for (const char c : rows(disk, "straight")) {
    expected += c == '\n' ? 1 : 0;
  }
  CHECK(count == expected);  // each once
}

int last_step(const FaultyDisk& disk) {
  const std::string name = fs::read_symlink(disk.checkpoints() / "latest").string();
  REQUIRE(name.starts_with("step_"));
  return std::stoi(name.substr(5));
}

/// Rows are written behind the steps. The save of step 4 waits for them: no later step than the one behind it is the last.
void check_stopped_soon(const FaultyDisk& disk, int first_fault) {
  CHECK(last_step(disk) >= first_fault);
  CHECK(last_step(disk) <= 5);
}

/// A small file system of its own; nothing where the test may not mount.
class SmallDisk {
 public:
  explicit SmallDisk(const fs::path& dir) : dir_(dir) {
    fs::create_directories(dir);
    mounted_ = ::mount("tmpfs", dir.c_str(), "tmpfs", 0, "size=128k") == 0;
  }
  ~SmallDisk() {
    if (mounted_) {
      ::umount2(dir_.c_str(), MNT_DETACH);
    }
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  bool mounted() const { return mounted_; }

 private:
  fs::path dir_;
  bool mounted_ = false;
};

}  // namespace

TEST_CASE("full disk: with checkpoint.on_error = 'warn' rows wait, and are written in order", "[full_disk]") {
  const FaultyDisk disk;
  disk.toy.trained(with({"--run.name=straight"}));
  const Finished done = disk.run(with({"--checkpoint.on_error=warn"}), failing("metrics.jsonl", 3, 4));
  INFO(done.out << done.err);
  CHECK(done.status == 0);
  CHECK_THAT(done.err, Contains("No space left on device; its rows wait in memory"));
  CHECK_THAT(done.err, Contains("metrics.jsonl is written again; ") && Contains(" rows that waited are in it"));
  CHECK(done.err.find("wait in memory") == done.err.rfind("wait in memory"));
  check_rows(disk);
}

TEST_CASE("full disk: with checkpoint.on_error = 'stop' the run is saved first, and goes on without a row lost or doubled", "[full_disk]") {
  const FaultyDisk disk;
  const int at = GENERATE(1, 3);
  disk.toy.trained(with({"--run.name=straight"}));
  const Finished done = disk.run(kEachStep, failing("metrics.jsonl", at, 100000));
  INFO(done.out << done.err);
  CHECK(done.status == 6);
  CHECK_THAT(done.err, Contains("metrics.jsonl: No space left on device") && Contains("the run is saved, with the rows that wait"));
  check_stopped_soon(disk, at);
  const Finished again = disk.toy.train(kEachStep);
  INFO(again.out << again.err);
  CHECK(again.status == 0);
  check_rows(disk);
}

TEST_CASE("full disk: rows of a run that is complete but for them are written by the next start", "[full_disk]") {
  const FaultyDisk disk;
  disk.toy.trained(with({"--run.name=straight"}));
  const Finished done = disk.run(with({"--checkpoint.on_error=warn"}), failing("metrics.jsonl", 3, 100000));
  INFO(done.out << done.err);
  CHECK(done.status == 6);
  CHECK_THAT(done.err, Contains("rows are not in the file, but in the last checkpoint"));
  CHECK(fs::read_symlink(disk.checkpoints() / "latest") == "step_10");
  const Finished again = disk.toy.train(kEachStep);
  INFO(again.out << again.err);
  CHECK(again.status == 0);
  check_rows(disk);
}

TEST_CASE("full disk: rows that wait in a checkpoint are not those of another run that goes on from it", "[full_disk]") {
  const FaultyDisk disk;
  REQUIRE(disk.run(kEachStep, failing("metrics.jsonl", 3, 100000)).status == 6);
  const int saved = last_step(disk);
  const Finished other = disk.toy.train(with({"--run.name=other", "--checkpoint.load_path=runs/toy", "--train.max_steps=7"}));
  INFO(other.out << other.err);
  REQUIRE(other.status == 0);
  const std::map<int, std::string> loss = disk.toy.series("other", "loss");
  CHECK(static_cast<int>(loss.size()) == 7 - saved);
  CHECK(loss.begin()->first == saved + 1);
}

TEST_CASE("full disk: heartbeat, log, result and a table of CSV end no run that may go on", "[full_disk]") {
  const FaultyDisk disk;
  const std::string file = GENERATE("heartbeat.json", "log.txt", "result.json", "metrics.csv");
  const Finished done =
      disk.run(with({"--checkpoint.on_error=warn", "--metrics.heartbeat_sec=0.0001", R"(--metrics.sinks=["console", "jsonl", "csv"])"}),
               failing(file, file == "result.json" ? 1 : 4, 3));
  INFO(file << "\n" << done.out << done.err);
  CHECK(done.status == 0);
  CHECK_THAT(done.err, Contains("No space left"));
  CHECK_THAT(done.err, !Contains("LOG ERROR"));
  if (file != "result.json") {
    CHECK_THAT(done.err, Contains("written again"));
  }
  if (file == "metrics.csv") {
    int lines = 0;
    for (const char c : FaultyDisk::bytes(disk.toy / "runs/toy/metrics.csv")) {
      lines += c == '\n' ? 1 : 0;
    }
    CHECK(lines == 11);
  }
}

TEST_CASE("full disk: trackers begin without room for their folders, and have all steps when there is some", "[full_disk]") {
  const FaultyDisk disk;
  const std::string folder = GENERATE("tb_logs", "wandb");
  const std::string sink = folder == "wandb" ? "wandb" : "tensorboard";
  std::map<std::string, std::string> faults = failing(folder, 1, 4);
  faults["KF_DISK_CALL"] = "mkdir";
  const Finished done = disk.run(with({"--checkpoint.on_error=warn", "--metrics.sinks=[\"console\", \"" + sink + "\"]"}), faults);
  INFO(done.out << done.err);
  CHECK(done.status == 0);
  CHECK_THAT(done.err, Contains("the disk is full") && Contains("is written again"));
  CHECK(!fs::is_empty(disk.toy / "runs/toy" / folder));
}

TEST_CASE("full disk: a run whose folder has no room for a while leaves no half line", "[full_disk]") {
  const FaultyDisk disk;
  const SmallDisk small(disk.toy / "small");
  if (!small.mounted()) {
    WARN("skipped: a small file system cannot be mounted here (" << std::strerror(errno) << ")");
    return;
  }
  const std::string on_error = GENERATE("warn", "stop");
  disk.toy.write("s.lua", R"(
return { extends = 'toy.toml', run = { dir = 'small/run' }, checkpoint = { dir = 'elsewhere', interval = 4, on_error = ')" +
                              on_error + R"(' },
  metrics = { log_interval = 1, heartbeat_sec = 0.0001 }, hooks = { { name = 'filler', on_step_end = function(ctx)
    local numbers = {}
    for i = 1, 60 do numbers['a_number_of_the_hook_' .. i] = i / 7 end
    ctx:log(numbers)  -- rows that leave their page soon
    if ctx.step == 3 and not io.open('again') then
      local fill = io.open('small/fill', 'w')
      fill:setvbuf('no')
      while fill:write(('x'):rep(512)) do end
      fill:close()
    end
    if ctx.step == 4 then pcall(ctx.write_artifact, ctx, 'note', ('x'):rep(9000)) end
    if ctx.step == 7 then os.remove('small/fill') end
  end } } }
)");
  const Finished done = run(disk.toy.command({"s.lua"}), disk.options({}));
  INFO(done.out << done.err);
  const auto lines = [&] { return FaultyDisk::bytes(disk.toy / "small/run/metrics.jsonl"); };
  CHECK(lines().ends_with("}\n"));
  if (on_error == "stop") {
    CHECK(done.status == 6);
    CHECK_THAT(done.err, Contains("No space left on device"));
    fs::remove(disk.toy / "small/fill");
    disk.toy.write("again", "");
    const Finished again = run(disk.toy.command({"s.lua"}), disk.options({}));
    INFO(again.out << again.err);
    CHECK(again.status == 0);
  } else {
    CHECK(done.status == 0);
  }
  for (int step = 1; step <= 10; ++step) {
    const std::string begin = "{\"step\": " + std::to_string(step) + ", \"loss\"";
    const std::string all = lines();
    INFO(begin);
    CHECK(all.find(begin) != std::string::npos);
    CHECK(all.find(begin) == all.rfind(begin));
  }
}

TEST_CASE("full disk: of two ranks the first cannot write its rows, and both end after a save", "[full_disk]") {
  const FaultyDisk disk;
  const Words words = with({"--train.batch_size=2", "--distributed.nccl_timeout_sec=60"});
  Words line{"--nproc", "2", "toy.toml"};
  line.insert(line.end(), words.begin(), words.end());
  const Finished done = run(disk.toy.command(line), disk.options(failing("metrics.jsonl", 3, 100000)));
  INFO(done.out << done.err);
  CHECK(done.status == 6);
  check_stopped_soon(disk, 3);
}
