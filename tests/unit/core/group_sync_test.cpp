#include "core/group_sync.h"

#include <sys/stat.h>

#include "core/error.h"
#include "support/temp_dir.h"

#include <catch2/catch.hpp>

using namespace kf;

TEST_CASE("group sync: files have their names and contents at once, whether they wait or not", "[fs]") {
  const test::TempDir dir;
  CHECK_FALSE(GroupSync::takes(dir / "a"));
  {
    const GroupSync group;
    write_file_atomic(dir / "a", "one");
    CHECK(read_file(dir / "a") == "one");
    CHECK(GroupSync::takes(dir / "a"));
    CHECK_THROWS_WITH(GroupSync(), Catch::Contains("already"));
    GroupSync::flush();
    GroupSync::flush();
    write_file_atomic(dir / "b", "two");
  }
  CHECK(read_file(dir / "b") == "two");
  CHECK_FALSE(GroupSync::takes(dir / "a"));
}

TEST_CASE("group sync: what cannot be made durable is named; what is gone needs it no more", "[fs]") {
  const test::TempDir dir;
  const GroupSync group;
  CHECK(GroupSync::takes(dir / "gone"));
  CHECK_NOTHROW(GroupSync::flush());
  REQUIRE(::mkfifo((dir / "pipe").c_str(), 0600) == 0);  // has nothing to be made durable, and says so
  dir.write("file", "x");
  GroupSync::takes(dir / "file");
  GroupSync::takes(dir / "pipe");
  CHECK_THROWS_WITH(GroupSync::flush(), Catch::Contains("cannot make") && Catch::Contains("pipe"));
  CHECK_NOTHROW(GroupSync::flush());  // it was said
}

TEST_CASE("group sync: what waits in a folder is found under the folder's new name", "[fs]") {
  const test::TempDir dir;
  const GroupSync group;
  fs::create_directories(dir / "tmp/deep");
  REQUIRE(::mkfifo((dir / "tmp/deep/pipe").c_str(), 0600) == 0);
  GroupSync::takes(dir / "tmp/deep/pipe");
  dir.write("tmpx", "another one, whose name begins alike");
  GroupSync::takes(dir / "tmpx");
  fs::rename(dir / "tmp", dir / "named");
  GroupSync::moved(dir / "tmp", dir / "named");
  CHECK_THROWS_WITH(GroupSync::flush(), Catch::Contains("named/deep/pipe"));
}
