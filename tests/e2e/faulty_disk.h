#pragma once
// The toy job on a disk that is slow or fails: tests/support/faulty_disk.c.

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "e2e/toy.h"

namespace kf::test {

using Words = std::vector<std::string>;
namespace fs = std::filesystem;

struct FaultyDisk {
  FaultyDisk() { fs::copy_file(KF_FAULTY_DISK, toy / "disk.so"); }  // LD_PRELOAD knows no path with a blank

  Options options(std::map<std::string, std::string> env) const {
    env.insert({"KF_DISK_PATH", "checkpoints/"});
    env["LD_PRELOAD"] = (toy / "disk.so").string();
    Options out;
    out.cwd = toy.folder();
    out.env = std::move(env);
    return out;
  }
  Finished run(const Words& more, std::map<std::string, std::string> env) const {
    return kf::test::run(command(more), options(std::move(env)));
  }
  Words command(const Words& more) const {
    Words args = more;
    args.insert(args.begin(), "toy.toml");
    return toy.command(args);
  }
  fs::path checkpoints(const std::string& run = "toy") const { return toy / "runs" / run / "checkpoints"; }
  /// What stands in the folder of checkpoints, hidden things too: "latest step_5 step_10".
  std::set<std::string> listing(const std::string& run = "toy") const { return names_in(checkpoints(run)); }
  static std::set<std::string> names_in(const fs::path& dir) {
    std::set<std::string> out;
    for (const auto& entry : fs::directory_iterator(dir)) {
      out.insert(entry.path().filename().string());
    }
    return out;
  }
  static std::string bytes(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  Toy toy;
};

}  // namespace kf::test
