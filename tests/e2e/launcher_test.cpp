// The program is found and started wherever it lies, as long as torch is in one of its three places.

#include <catch2/catch.hpp>

#include <filesystem>

#include "support/process.h"
#include "support/temp_dir.h"

namespace fs = std::filesystem;
using namespace kf::test;
using Catch::Matchers::Contains;

namespace {

const fs::path kHost = KF_HOST;
const fs::path kTorch = KF_TORCH_DIR;

/// A copy of the launcher in a folder with a space, far from any .deps. The program itself is only a link, since it is big.
class Copy {
 public:
  Copy() {
    fs::create_directory(folder());
    fs::copy_file(kHost, program());
  }
  fs::path folder() const { return dir_ / "moved here"; }
  fs::path program() const { return folder() / "kf-host"; }
  fs::path library() const { return folder() / "libkf-host.so"; }
  void link_library() const { fs::create_symlink(kHost.parent_path() / "libkf-host.so", library()); }

 private:
  TempDir dir_;
};

Finished version(const fs::path& program, std::map<std::string, std::string> env = {}) {
  return run({program.string(), "--version"}, {.env = std::move(env), .unset = {"KF_TORCH_DIR"}});
}

}  // namespace

TEST_CASE("launcher: the built program finds torch by itself", "[launcher]") {
  const Finished done = version(kHost);
  CHECK(done.status == 0);
  CHECK(done.err.empty());
  CHECK_THAT(done.out, Contains("kf-host ") && Contains("torch 2.11.0") && Contains("LuaJIT") && Contains("git ") && Contains("CUDA"));
}

// The library's own RUNPATH would find torch, too, so these ask the dynamic linker which file it took.
TEST_CASE("launcher: torch may be named by KF_TORCH_DIR", "[launcher]") {
  const Copy copy;
  copy.link_library();
  const TempDir elsewhere;
  fs::create_directory_symlink(kTorch, elsewhere / "my torch");
  const Finished done = version(copy.program(), {{"KF_TORCH_DIR", (elsewhere / "my torch").string()}, {"LD_DEBUG", "files"}});
  CHECK(done.status == 0);
  CHECK_THAT(done.err, Contains("file=" + (elsewhere / "my torch/lib/libtorch_cpu.so").string()));
}

TEST_CASE("launcher: torch may lie beside the program", "[launcher]") {
  const Copy copy;
  copy.link_library();
  fs::create_directory_symlink(kTorch, copy.folder() / "torch");
  const Finished done = version(copy.program(), {{"LD_DEBUG", "files"}});
  CHECK(done.status == 0);
  CHECK_THAT(done.err, Contains("file=" + (copy.folder() / "torch/lib/libtorch_cpu.so").string()));
}

TEST_CASE("launcher: a KF_TORCH_DIR without torch names the folder and the three ways", "[launcher]") {
  const Finished done = version(kHost, {{"KF_TORCH_DIR", "/no/such/folder"}});
  CHECK(done.status == 1);
  CHECK(done.out.empty());
  CHECK_THAT(done.err, Contains("/no/such/folder") && Contains("KF_TORCH_DIR") && Contains("beside") && Contains(".deps/torch"));
}

TEST_CASE("launcher: an empty KF_TORCH_DIR counts as none", "[launcher]") { CHECK(version(kHost, {{"KF_TORCH_DIR", ""}}).status == 0); }

TEST_CASE("launcher: a torch folder beside it that is no torch is an error, not skipped", "[launcher]") {
  const Copy copy;
  copy.link_library();
  fs::create_directories(copy.folder() / "torch" / "lib");
  const Finished done = version(copy.program());
  CHECK(done.status == 1);
  CHECK_THAT(done.err, Contains("torch/lib/libc10.so") && Contains("KF_TORCH_DIR"));
}

TEST_CASE("launcher: a missing program library is named", "[launcher]") {
  const Copy copy;
  const Finished done = version(copy.program());
  CHECK(done.status == 1);
  CHECK_THAT(done.err, Contains("libkf-host.so") && !Contains("KF_TORCH_DIR"));
}

TEST_CASE("launcher: a link to the program works from anywhere", "[launcher]") {
  const TempDir dir;
  fs::create_symlink(kHost, dir / "kf");
  CHECK(version(dir / "kf").status == 0);
}
