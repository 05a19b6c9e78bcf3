// Files that are read while others write to them.

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "core/error.h"
#include "core/source_watch.h"
#include "support/temp_dir.h"

namespace {

using Catch::Contains;
using kf::SourceWatch;
using kf::verify_sources;
namespace fs = std::filesystem;

/// Times are only as fine as the kernel's clock: an hour back is another time for sure.
void set_back(const fs::path& path) {
  struct stat info {};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  const timespec times[2]{info.st_atim, {info.st_mtim.tv_sec - 3600, 0}};
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
}

}  // namespace

TEST_CASE("source watch: a mapped file that was written to is an error that names it", "[core]") {
  const kf::test::TempDir dir;
  const fs::path path = dir.write("data.txt", "some text");
  const fs::path other = dir.write("other.txt", "some text");
  const SourceWatch first(path);
  CHECK_NOTHROW(verify_sources());
  SECTION("of another size") {
    dir.write("data.txt", "some");
    CHECK_THROWS_WITH(verify_sources(), Contains("data.txt (9 bytes became 4)") && !Contains("other.txt"));
  }
  SECTION("of the same size") {
    const SourceWatch second(other);
    set_back(path);
    set_back(other);
    CHECK_THROWS_WITH(verify_sources(), Contains("data.txt (it was written to), ") && Contains("other.txt (it was written to);"));
  }
  SECTION("until nobody reads it any more") {
    {
      const SourceWatch second(other);
      set_back(other);
      CHECK_THROWS_AS(verify_sources(), kf::Error);
    }
    CHECK_NOTHROW(verify_sources());
  }
  SECTION("also where the watch was moved") {
    SourceWatch from(other);
    const SourceWatch to(std::move(from));
    set_back(other);
    CHECK_THROWS_AS(verify_sources(), kf::Error);
  }
}

TEST_CASE("source watch: what leaves the content alone is no change", "[core]") {
  const kf::test::TempDir dir;
  const fs::path path = dir.write("data.txt", "some text");
  const SourceWatch watch(path);
  fs::permissions(path, fs::perms::owner_read);
  CHECK_NOTHROW(verify_sources());
  fs::create_hard_link(path, dir / "link.txt");
  CHECK_NOTHROW(verify_sources());
  fs::rename(path, dir / "moved.txt");  // the map still holds what it held: only said
  CHECK_NOTHROW(verify_sources());
  dir.write("data.txt", "another file");
  CHECK_NOTHROW(verify_sources());
  const fs::path tokenizer = dir.write("tokenizer.json", "{}");
  const SourceWatch loaded(tokenizer, SourceWatch::Use::loaded);
  dir.write("tokenizer.json", "[1]");
  CHECK_NOTHROW(verify_sources());
}
