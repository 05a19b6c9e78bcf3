// checkpoint.mirror: copies of checkpoints in a second folder.

#include <catch2/catch.hpp>

#include <csignal>

#include "e2e/faulty_disk.h"

using namespace kf::test;
using Catch::Contains;

using Names = std::set<std::string>;

namespace {

struct Mirrored : FaultyDisk {
  const fs::path mirror = toy / "second/runs/toy";
  const Words words{"--checkpoint.mirror=second", "--checkpoint.interval=2"};

  void check_equal(const std::string& step) const {
    for (const auto& entry : fs::directory_iterator(checkpoints() / step)) {
      INFO(entry.path());
      CHECK(bytes(entry.path()) == bytes(mirror / step / entry.path().filename()));
    }
  }
  Names copies() const {
    Names names = names_in(mirror);
    names.erase(".lock");
    names.erase("mirror.json");
    return names;
  }
};

}  // namespace

TEST_CASE("mirror: holds the same checkpoints, keeps what the rules keep, and a resume takes it where the first place is lost", "[saves]") {
  const Mirrored disk;
  disk.toy.trained({"--run.name=straight"});
  const std::string mode = GENERATE("disabled", "async");
  Words half = disk.words;
  half.insert(half.end(), {"--train.max_steps=6", "--scheduler.total_steps=10", "--checkpoint.async_mode=" + mode});
  const Finished first = disk.toy.train(half);
  INFO(first.out << first.err);
  REQUIRE(first.status == 0);
  CHECK(disk.copies().contains("step_6"));
  CHECK(fs::read_symlink(disk.mirror / "latest") == "step_6");
  disk.check_equal("step_6");
  if (mode == "async") {  // the place is lost, else the file damaged
    fs::remove_all(disk.checkpoints());
  } else {
    std::string bytes = FaultyDisk::bytes(disk.checkpoints() / "step_6/model.safetensors");
    bytes[bytes.size() / 2] ^= 1;
    disk.toy.write("runs/toy/checkpoints/step_6/model.safetensors", bytes);
  }
  const Finished rest = disk.toy.train(disk.words);
  INFO(rest.out << rest.err);
  REQUIRE(rest.status == 0);
  CHECK_THAT(rest.err, Contains("going on from the copy second/runs/toy/step_6"));
  CHECK(disk.toy.series("toy", "loss") == disk.toy.series("straight", "loss"));
  CHECK(FaultyDisk::bytes(disk.checkpoints() / "step_10/model.safetensors") ==
        FaultyDisk::bytes(disk.checkpoints("straight") / "step_10/model.safetensors"));
  disk.check_equal("step_10");
  CHECK(disk.copies().contains("step_10"));
  CHECK(disk.copies().size() <= 4);  // latest and the newest three
}

TEST_CASE("mirror: one that fails is a warning, and the checkpoints themselves are whole", "[saves]") {
  const Mirrored disk;
  const std::string call = GENERATE("write", "fsync", "rename");
  const Finished done = disk.run(disk.words, {{"KF_DISK_CALL", call},
                                              {"KF_DISK_PATH", "second/"},
                                              {"KF_DISK_FAIL_AT", "4"},
                                              {"KF_DISK_FAILURES", "1000000"},
                                              {"KF_DISK_ERRNO", "28"}});
  INFO(done.out << done.err);
  CHECK(done.status == 0);
  CHECK_THAT(done.err, Contains("was not copied to checkpoint.mirror") && Contains("No space left"));
  CHECK(disk.listing() == Names{"latest", "step_10", "step_6", "step_8"});
  if (call != "fsync") {
    return;
  }
  // Room again: the newest is copied when the run is looked at once more.
  const Finished again = disk.toy.train([&] {
    Words more = disk.words;
    more.emplace_back("--train.max_steps=11");
    return more;
  }());
  INFO(again.out << again.err);
  REQUIRE(again.status == 0);
  disk.check_equal("step_11");
}

TEST_CASE("mirror: a kill in the middle of a copy leaves nothing half under a checkpoint's name", "[saves]") {
  const Mirrored disk;
  Process process(disk.command(disk.words),
                  disk.options({{"KF_DISK_CALL", "fsync"}, {"KF_DISK_PATH", "second/runs/toy/.step_"}, {"KF_DISK_DELAY_MS", "1000000"}}));
  REQUIRE(process.wait_for("saved step_10"));
  process.signal(SIGKILL);
  process.wait();
  for (const std::string& name : disk.copies()) {
    CHECK(name.starts_with(".step_"));
  }
  REQUIRE(disk.toy.train(disk.words).status == 0);  // complete
  Words more = disk.words;
  more.emplace_back("--train.max_steps=12");
  const Finished done = disk.toy.train(more);
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  disk.check_equal("step_12");
  for (const std::string& name : disk.copies()) {
    CHECK_FALSE(name.starts_with(".step_"));
  }
}

TEST_CASE("mirror: run.fresh moves the copies of the earlier run aside, and a place of the run's own is refused", "[saves]") {
  const Mirrored disk;
  REQUIRE(disk.toy.train(disk.words).status == 0);
  Words fresh = disk.words;
  fresh.insert(fresh.end(), {"--run.fresh=true", "--train.max_steps=2", "--train.seed=7"});
  const Finished done = disk.toy.train(fresh);
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  CHECK(disk.copies() == Names{"latest", "step_2"});
  CHECK(fs::exists(disk.toy / "second/runs/toy.1/step_10"));
  const Finished own = disk.toy.train({"--run.name=other", "--checkpoint.mirror=."});
  CHECK(own.status == 2);
  CHECK_THAT(own.err, Contains("checkpoint.mirror"));
}

TEST_CASE("mirror: copies are found whatever the run's folder is called from, and another run's are refused", "[saves]") {
  const Mirrored disk;
  const auto from = [&](const std::string& folder, Words words) {
    fs::create_directories(disk.toy / folder);
    fs::copy_file(disk.toy / "toy.toml", disk.toy / folder / "toy.toml", fs::copy_options::overwrite_existing);
    words.insert(words.end(),
                 {"--checkpoint.mirror=" + (disk.toy / "second").string(), "--checkpoint.interval=2",
                  "--data.dataset_path=" + (disk.toy / "text").string(), "--eval.dataset_path=" + (disk.toy / "text").string()});
    Options options;
    options.cwd = disk.toy / folder;
    Finished done = kf::test::run(disk.toy.command(words), options);
    UNSCOPED_INFO(done.out << done.err);
    return done;
  };
  REQUIRE(from("one", {"toy.toml", "--train.max_steps=4"}).status == 0);
  const std::string owner = disk.toy.read("second/runs/toy/mirror.json");
  const Finished other = from("two", {"toy.toml"});
  CHECK(other.status == 2);
  CHECK_THAT(other.err, Contains("are of another run") && Contains("run.id = ") && Contains("run.name"));
  CHECK(from("two", {"toy.toml", "--run.fresh=true"}).status == 2);
  CHECK(fs::exists(disk.mirror / "step_4"));
  // By its whole path, from elsewhere, without its own checkpoints.
  const std::string whole = (disk.toy / "one/runs/toy").string();
  fs::remove_all(disk.toy / "one/runs/toy/checkpoints");
  const Finished found = from("three", {whole, "--train.max_steps=6"});
  CHECK(found.status == 0);
  CHECK_THAT(found.err, Contains("going on from the copy") && Contains("step_4"));
  CHECK(fs::exists(disk.mirror / "step_6"));
  // The whole folder is lost: where it lay says that the copies are its own.
  fs::remove_all(disk.toy / "one/runs/toy");
  const Finished lost = from("one", {"toy.toml", "--train.max_steps=8"});
  CHECK(lost.status == 0);
  CHECK_THAT(lost.err, Contains("going on from the copy") && Contains("step_6"));
  CHECK(disk.toy.read("second/runs/toy/mirror.json") == owner);
  // Where the folder is lost, on another machine, say, the id tells.
  fs::remove_all(disk.toy / "one/runs/toy");
  const std::size_t at = owner.find("\"id\": \"") + 7;
  const Finished moved = from("two", {"toy.toml", "--train.max_steps=10", "--run.id=" + owner.substr(at, owner.find('"', at) - at)});
  CHECK(moved.status == 0);
  CHECK_THAT(moved.err, Contains("going on from the copy") && Contains("step_8"));
  // A folder that was moved keeps its copies; one that was copied does not share them.
  fs::create_directories(disk.toy / "four/runs");
  fs::rename(disk.toy / "two/runs/toy", disk.toy / "four/runs/toy");
  CHECK(from("four", {"toy.toml", "--train.max_steps=11"}).status == 0);
  fs::create_directories(disk.toy / "five/runs");
  fs::copy(disk.toy / "four/runs/toy", disk.toy / "five/runs/toy", fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  const Finished copied = from("five", {"toy.toml", "--train.max_steps=12"});
  CHECK(copied.status == 2);
  CHECK_THAT(copied.err, Contains("four/runs/toy, which runs/toy is a copy of"));
  CHECK(!fs::exists(disk.mirror / "step_12"));
}

TEST_CASE("mirror: of two ranks", "[saves]") {
  const Mirrored disk;
  Words words{"--nproc", "2", "toy.toml", "--train.batch_size=2", "--checkpoint.async_mode=async", "--distributed.zero_stage=2"};
  words.insert(words.end(), disk.words.begin(), disk.words.end());
  const Finished done = disk.toy.host(words);
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  disk.check_equal("step_10");
  fs::remove_all(disk.checkpoints());
  words.emplace_back("--train.max_steps=12");
  REQUIRE(disk.toy.host(words).status == 0);
  disk.check_equal("step_12");
}
