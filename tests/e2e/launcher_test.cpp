// The program is found and started wherever it lies, as long as torch is in one of its three places.

#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "support/process.h"
#include "support/temp_dir.h"

namespace fs = std::filesystem;
using namespace kf::test;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

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

Finished host(const fs::path& program, const std::vector<std::string>& args, std::map<std::string, std::string> env = {}) {
  std::vector<std::string> argv{program.string()};
  argv.insert(argv.end(), args.begin(), args.end());
  return run(argv, {.env = std::move(env), .unset = {"KF_TORCH_DIR"}});
}

/// A command that needs torch.
Finished registry(const fs::path& program, std::map<std::string, std::string> env = {}) {
  return host(program, {"registry", "norm"}, std::move(env));
}

}  // namespace

TEST_CASE("launcher: the built program finds torch by itself", "[launcher]") {
  const Finished done = registry(kHost);
  CHECK(done.status == 0);
  CHECK(done.err.empty());
  CHECK_THAT(done.out, Contains("rmsnorm"));
}

TEST_CASE("launcher: help and version need neither torch nor the program's library, and no time", "[launcher]") {
  const Copy copy;  // without the library
  for (const std::string word : {"--help", "-h", "help", "--version"}) {
    CAPTURE(word);
    double fastest = 1e9;  // of several: the machine may be busy
    for (int i = 0; i < 10; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      const Finished done = host(copy.program(), {word}, {{"KF_TORCH_DIR", "/no/such/folder"}});
      fastest = std::min(fastest, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
      REQUIRE(done.status == 0);
      CHECK(done.err.empty());
      CHECK_THAT(done.out, Contains("kf-host "));
    }
    CHECK(fastest < 0.05);
  }
  CHECK_THAT(host(kHost, {"--version"}).out, Contains("torch 2.11.0") && Contains("LuaJIT") && Contains("git ") && Contains("CUDA"));
  CHECK(host(copy.program(), {"--help"}).out == host(kHost, {"help"}).out);
}

TEST_CASE("launcher: help of every command needs neither torch nor the program's library", "[launcher]") {
  const Copy copy;  // without the library
  const auto alone = [&](const std::vector<std::string>& words) {
    return host(copy.program(), words, {{"KF_TORCH_DIR", "/no/such/folder"}});
  };
  std::set<std::string> commands{"train", "completion"};  // and every other that the page names
  std::istringstream page(alone({"--help"}).out);
  for (std::string line; std::getline(page, line);) {
    std::string program;
    std::string command;
    std::istringstream words(line);
    if (words >> program >> command && line.starts_with("  kf-host") && command != "COMMAND") {
      commands.insert(command);
    }
  }
  CHECK(commands.size() == 13);
  for (const std::string& command : commands) {
    const std::string help = alone({command, "--help"}).out;
    CHECK_THAT(help, StartsWith("usage: kf-host "));
    CHECK_THAT(help, Contains(command));
    for (const std::vector<std::string>& words : {std::vector<std::string>{command, "-h"}, {"help", command}, {command, "x", "--help"}}) {
      CAPTURE(words);
      const Finished done = alone(words);
      CHECK(done.status == 0);
      CHECK(done.err.empty());
      CHECK(done.out == help);
    }
  }
  CHECK_THAT(alone({"job.toml", "--train.seed=1", "--help"}).out, StartsWith("usage: kf-host [train]") && Contains("[optimizer]"));
  CHECK_THAT(alone({"data", "info", "--help"}).out, Contains("kf-host data info PATH"));
  CHECK_THAT(alone({"data", "cache", "--help"}).out, Contains("--unused-days"));
  CHECK(alone({"sweep", "help"}).out == alone({"sweep", "--help"}).out);
  CHECK(alone({"lua", "--", "--help"}).status == 1);                  // the script's own
  CHECK(alone({"generate", "x", "--prompt", "--help"}).status == 1);  // the prompt
}

// The library's own RUNPATH would find torch, too, so these ask the dynamic linker which file it took.
TEST_CASE("launcher: torch may be named by KF_TORCH_DIR", "[launcher]") {
  const Copy copy;
  copy.link_library();
  const TempDir elsewhere;
  fs::create_directory_symlink(kTorch, elsewhere / "my torch");
  const Finished done = registry(copy.program(), {{"KF_TORCH_DIR", (elsewhere / "my torch").string()}, {"LD_DEBUG", "files"}});
  CHECK(done.status == 0);
  CHECK_THAT(done.err, Contains("file=" + (elsewhere / "my torch/lib/libtorch_cpu.so").string()));
}

TEST_CASE("launcher: torch may lie beside the program", "[launcher]") {
  const Copy copy;
  copy.link_library();
  fs::create_directory_symlink(kTorch, copy.folder() / "torch");
  const Finished done = registry(copy.program(), {{"LD_DEBUG", "files"}});
  CHECK(done.status == 0);
  CHECK_THAT(done.err, Contains("file=" + (copy.folder() / "torch/lib/libtorch_cpu.so").string()));
}

TEST_CASE("launcher: a KF_TORCH_DIR without torch names the folder and the three ways", "[launcher]") {
  const Finished done = registry(kHost, {{"KF_TORCH_DIR", "/no/such/folder"}});
  CHECK(done.status == 1);
  CHECK(done.out.empty());
  CHECK_THAT(done.err, Contains("/no/such/folder") && Contains("KF_TORCH_DIR") && Contains("beside") && Contains(".deps/torch"));
}

TEST_CASE("launcher: an empty KF_TORCH_DIR counts as none", "[launcher]") { CHECK(registry(kHost, {{"KF_TORCH_DIR", ""}}).status == 0); }

TEST_CASE("launcher: a torch folder beside it that is no torch is an error, not skipped", "[launcher]") {
  const Copy copy;
  copy.link_library();
  fs::create_directories(copy.folder() / "torch" / "lib");
  const Finished done = registry(copy.program());
  CHECK(done.status == 1);
  CHECK_THAT(done.err, Contains("torch/lib/libc10.so") && Contains("KF_TORCH_DIR"));
}

TEST_CASE("launcher: a missing program library is named", "[launcher]") {
  const Copy copy;
  const Finished done = registry(copy.program());
  CHECK(done.status == 1);
  CHECK_THAT(done.err, Contains("libkf-host.so") && !Contains("KF_TORCH_DIR"));
}

TEST_CASE("launcher: a link to the program works from anywhere", "[launcher]") {
  const TempDir dir;
  fs::create_symlink(kHost, dir / "kf");
  CHECK(registry(dir / "kf").status == 0);
}
