#include "report/bundle/bundle.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "core/error.h"
#include "core/fs.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace fs = std::filesystem;
using Catch::Matchers::Contains;
using kf::report::bundle;
using kf::test::run;
using kf::test::TempDir;

namespace {

void write_run(const TempDir& dir, const std::string& name) {
  dir.write(fs::path(name) / "run.json", "{}");
  dir.write(fs::path(name) / "code/lua/a b.lua", "return 1");
  dir.write(fs::path(name) / "metrics.jsonl", std::string(100000, 'x'));
  dir.write(fs::path(name) / "checkpoints/step_1/model.safetensors", "large");
  dir.write(fs::path(name) / "incidents/step_1/batch.safetensors", "data");
  dir.write(fs::path(name) / ".lock", "");
}

}  // namespace

TEST_CASE("bundle: an archive holds what a run was made of, and the same bytes each time", "[bundle]") {
  const TempDir dir;
  write_run(dir, "x");
  for (const char* ending : {".tar.gz", ".tar.zst"}) {
    const fs::path first = dir / (std::string("first") + ending), second = dir / (std::string("second") + ending);
    CHECK(bundle(dir / "x", first).files == 3);
    fs::last_write_time(dir / "x/run.json", fs::file_time_type::clock::now() - std::chrono::hours(5));
    fs::permissions(dir / "x/run.json", fs::perms::owner_all);
    bundle(dir / "x", second);
    CHECK(kf::read_file(first) == kf::read_file(second));
    CHECK(fs::file_size(first) < 10000);
  }
  const kf::test::Finished listed = run({"tar", "-tzf", (dir / "first.tar.gz").string()});
  CHECK(listed.out == "x/code/lua/a b.lua\nx/metrics.jsonl\nx/run.json\n");
  fs::create_directories(dir / "out");
  CHECK(run({"tar", "-xzf", (dir / "first.tar.gz").string(), "-C", (dir / "out").string()}).status == 0);
  CHECK(kf::read_file(dir / "out/x/code/lua/a b.lua") == "return 1");
}

TEST_CASE("bundle: nothing is written over, and nothing is left half", "[bundle]") {
  const TempDir dir;
  write_run(dir, "x");
  dir.write("there.tar.gz", "mine");
  CHECK_THROWS_WITH(bundle(dir / "x", dir / "there.tar.gz"), Contains("is there already"));
  CHECK_THROWS_WITH(bundle(dir / "x", dir / "a.zip"), Contains(".tar.zst or .tar.gz"));
  CHECK_THROWS_WITH(bundle(dir / "x", dir / "nowhere/a.tar.gz"), Contains("cannot write"));
  CHECK(kf::read_file(dir / "there.tar.gz") == "mine");
}
