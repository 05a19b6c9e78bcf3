#include "core/fs.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "core/error.h"
#include "support/temp_dir.h"

using namespace kf;
using Catch::Matchers::Contains;
using test::TempDir;

namespace {

std::size_t entries(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

}  // namespace

TEST_CASE("fs: a file is read whole, zero bytes and all", "[fs]") {
  const TempDir dir;
  std::string content(200'000, 'x');
  content[70'000] = '\0';
  CHECK(read_file(dir.write("big", content)) == content);
  CHECK(read_file(dir.write("empty", "")).empty());
}

TEST_CASE("fs: a file that cannot be read is named with the system's reason", "[fs]") {
  const TempDir dir;
  CHECK_THROWS_WITH(read_file(dir / "none.toml"), Contains("none.toml") && Contains("No such file"));
  CHECK_THROWS_WITH(read_file(dir.path()), Contains(dir.path().string()) && Contains("it is a folder, not a regular file"));
}

TEST_CASE("fs: an atomic write replaces the file and leaves nothing beside it", "[fs]") {
  const TempDir dir;
  const fs::path file = dir.write("state.json", "old");
  write_file_atomic(file, "new content");
  CHECK(read_file(file) == "new content");
  CHECK(entries(dir.path()) == 1);
  write_file_atomic(file, "");
  CHECK(read_file(file).empty());
}

TEST_CASE("fs: a reader that has the old file open keeps the old content", "[fs]") {
  const TempDir dir;
  const fs::path file = dir.write("state", "old");
  const MappedFile old(file);
  write_file_atomic(file, "brand new");
  CHECK(std::string(reinterpret_cast<const char*>(old.bytes().data()), old.bytes().size()) == "old");
}

TEST_CASE("fs: an atomic write that fails says so, keeps the old file and leaves no temporary one", "[fs]") {
  const TempDir dir;
  CHECK_THROWS_WITH(write_file_atomic(dir / "no folder" / "x", "content"), Contains("no folder"));
  fs::create_directory(dir / "taken");
  CHECK_THROWS_WITH(write_file_atomic(dir / "taken", "content"), Contains("taken"));
  CHECK(fs::is_directory(dir / "taken"));
  CHECK(entries(dir.path()) == 1);
}

TEST_CASE("fs: a mapped file shows the bytes and nothing past the end", "[fs]") {
  const TempDir dir;
  const MappedFile file(dir.write("data", "abc"));
  REQUIRE(file.bytes().size() == 3);
  CHECK(static_cast<char>(file.bytes()[2]) == 'c');
  CHECK(MappedFile(dir.write("empty", "")).bytes().empty());
}

TEST_CASE("fs: a mapping can be moved", "[fs]") {
  const TempDir dir;
  MappedFile first(dir.write("a", "first"));
  MappedFile second(dir.write("b", "2nd"));
  first = std::move(second);
  CHECK(first.bytes().size() == 3);
  CHECK(first.path().filename() == "b");
  const MappedFile third(std::move(first));
  CHECK(static_cast<char>(third.bytes()[0]) == '2');
}

TEST_CASE("fs: what is no regular file is not mapped", "[fs]") {
  const TempDir dir;
  CHECK_THROWS_WITH(MappedFile(dir.path()), Contains("not a regular file"));
  CHECK_THROWS_WITH(MappedFile(dir / "none"), Contains("No such file"));
  try {
    MappedFile file(dir / "none");
    FAIL("nothing was thrown");
  } catch (const Error& e) {
    CHECK(e.code() == Code::data);
  }
}

TEST_CASE("fs: a named pipe is refused instead of waited for", "[fs]") {
  const TempDir dir;
  REQUIRE(::mkfifo((dir / "pipe").c_str(), 0600) == 0);
  CHECK_THROWS_WITH(MappedFile(dir / "pipe"), Contains("not a regular file"));
}

TEST_CASE("fs: who reads a mapped file that was cut off meanwhile ends with status 5") {
  const kf::test::TempDir folder;
  const kf::fs::path path = folder.write("data", std::string(1 << 16, 'x'));
  const pid_t child = ::fork();
  if (child == 0) {
    const kf::MappedFile file(path);
    if (::truncate(path.c_str(), 0) != 0) {
      ::_exit(1);
    }
    const volatile std::byte* const last = &file.bytes().back();
    ::_exit(*last == std::byte{'x'} ? 2 : 3);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 5));
}
