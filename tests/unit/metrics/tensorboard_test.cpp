#include "metrics/tensorboard/tensorboard.h"

#include <catch2/catch.hpp>

#include <algorithm>

#include "core/error.h"
#include "metrics/tensorboard/event.h"
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
  REQUIRE(files.size() == 3);
  CHECK_THAT(files[1].filename().string(), Contains("events.out.tfevents.3000000000."));
  CHECK_THAT(files[2].filename().string(), Contains("events.out.tfevents.3000000001."));
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
