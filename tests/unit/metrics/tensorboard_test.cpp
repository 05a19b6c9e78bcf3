#include "metrics/tensorboard/tensorboard.h"

#include <catch2/catch.hpp>

#include <optional>

#include "core/error.h"
#include "metrics/tensorboard/event.h"
#include "support/file_size_limit.h"
#include "support/temp_dir.h"

#include "tracked_run.h"

using namespace kf;
using Catch::Matchers::Contains;
using kf::test::TrackedRun;

TEST_CASE("tensorboard: checksums are those of TFRecords", "[trackers]") {
  // RFC 3720, B.4: 32 bytes of zeros have CRC-32C 0x8a9136aa.
  constexpr std::uint32_t crc = 0x8a9136aaU;
  CHECK(tensorboard::masked_crc(std::string(32, '\0')) == ((crc >> 15U) | (crc << 17U)) + 0xa282ead8U);
}

TEST_CASE("tensorboard: each start has a file behind those before it, whatever the clock says", "[trackers]") {
  const test::TempDir dir;
  const TrackedRun run(dir.path());
  fs::create_directories(dir / "tb_logs");
  write_file_atomic(dir / "tb_logs/events.out.tfevents.2999999999.elsewhere.1", "");
  test::tell_a_hard_life<TensorBoardSink>(run);
  const std::vector<fs::path> files = glob(dir.path(), "tb_logs/*");
  REQUIRE(files.size() == 4);  // the other one's, and two starts and a roll-back
  CHECK_THAT(files[1].filename().string(), Contains("events.out.tfevents.3000000000."));
  CHECK_THAT(files[2].filename().string(), Contains("events.out.tfevents.3000000001."));
}

TEST_CASE("tensorboard: records of steps that are done again, and half-written ones, are left out", "[trackers]") {
  namespace tb = tensorboard;
  const std::string head = tb::version_record(1) + tb::start_record(1, 9);
  const std::string early = tb::scalars_record(2, 3, {{"a", 1}}) + tb::text_record(2, 4, "t", "text");
  const std::string late = tb::scalars_record(2, 5, {{"a", 1}}) + tb::scalars_record(2, 6, {{"b", 1}});
  const std::string file = head + early + late;
  CHECK(tb::records_before(file, 5) == head + early);
  CHECK(tb::records_before(file, 7) == file);
  CHECK(tb::records_before(file.substr(0, file.size() - 1), 7).size() < file.size());
  CHECK(tb::records_before(file.substr(0, head.size() + 5), 7) == head);
  std::string damaged = file;
  damaged[head.size() + 14] ^= 1;
  CHECK(tb::records_before(damaged, 7) == head);
  CHECK(tb::records_before("", 7).empty());
}

TEST_CASE("tensorboard: what a disk does not take waits, is kept by a checkpoint, and is written once", "[trackers]") {
  const test::TempDir dir;
  const TrackedRun run(dir.path());
  const auto size = [&dir] {
    std::uintmax_t out = 0;
    for (const fs::path& file : glob(dir.path(), "tb_logs/*")) {
      out += fs::file_size(file);
    }
    return out;
  };
  config::Node saved;
  std::uintmax_t whole = 0;
  {
    TensorBoardSink sink;
    run.begin(sink, 0);
    test::tell_steps(sink, 1, 2, 1);
    std::optional<test::FileSizeLimit> full(size() + 10);
    test::tell_steps(sink, 3, 3, 1);
    sink.row(test::tracked_row(4, 1));  // a save comes within its step
    saved = sink.state();
    CHECK_THAT(sink.fault(), Contains("File too large"));
    CHECK(saved.array()->size() == 2);
    sink.step_over(4);
    full.reset();
    test::tell_steps(sink, 5, 5, 1);
    CHECK(sink.fault().empty());
    whole = size();
  }
  TensorBoardSink sink;
  sink.load(saved);
  run.begin(sink, 4);
  test::tell_steps(sink, 5, 5, 1);
  const std::size_t start = (tensorboard::version_record(1) + tensorboard::start_record(1, 3)).size();
  CHECK(size() < 2 * whole);
  CHECK(size() > whole + start);
}

TEST_CASE("tensorboard: a folder of one's own has a folder for each run", "[trackers]") {
  const test::TempDir dir;
  TrackedRun run(dir / "run");
  run.config.metrics.tensorboard_dir = (dir / "all").string();
  run.plan.tensorboard_dir = dir / "all";
  TensorBoardSink sink;
  run.begin(sink, 0);
  CHECK(glob(dir.path(), "all/a run/events.out.tfevents.*").size() == 1);
}

TEST_CASE("tensorboard: a run begins and goes back where the disk is full, and all is written when it is not", "[trackers]") {
  const auto live = [](const fs::path& dir, bool disk_is_full) {
    const TrackedRun run(dir);
    TensorBoardSink sink;
    std::optional<test::FileSizeLimit> full;
    if (disk_is_full) {
      full.emplace(0);
    }
    run.begin(sink, 0);
    test::tell_steps(sink, 1, 3, 1);
    sink.before_save();
    sink.saved(3, "step");
    if (disk_is_full) {
      sink.rewind(2);
      test::tell_steps(sink, 3, 3, 2);
    }
    const std::string fault = sink.fault();
    full.reset();
    CHECK(fault.empty() != disk_is_full);
    test::tell_steps(sink, 4, 4, 2);
    CHECK(sink.fault().empty());
    const std::vector<fs::path> files = glob(dir, "tb_logs/events.*");
    REQUIRE(files.size() == 1);
    return fs::file_size(files.front());
  };
  const test::TempDir plain;
  const test::TempDir late;
  CHECK(live(late.path(), true) == live(plain.path(), false));
}
