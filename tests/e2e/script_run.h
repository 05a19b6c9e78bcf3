#pragma once
// A script in a folder of its own, run by the real program.

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "e2e/toy.h"

namespace kf::test {

/// A folder with toy.toml and the script s.lua.
struct ScriptRun {
  explicit ScriptRun(const std::string& script) { write(script); }
  void write(const std::string& script) const { toy.write("s.lua", "local kf = require('kf')\n" + script); }
  Finished go(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), "s.lua");
    return toy.host(more);
  }
  /// What the script printed, without the run's own lines: those that begin with "> ".
  static std::string said(const Finished& done) {
    std::string out;
    std::size_t at = 0;
    while (at < done.out.size()) {
      const std::size_t end = std::min(done.out.find('\n', at), done.out.size());
      if (done.out.compare(at, 2, "> ") == 0) {
        out += done.out.substr(at + 2, end - at - 2) + "\n";
      }
      at = end + 1;
    }
    return out;
  }
  std::filesystem::path checkpoints() const { return toy / "runs/s/checkpoints"; }

  /// Takes away the checkpoints behind `step`, as if the run had been killed there.
  void forget_after(int step) const {
    std::vector<std::filesystem::path> gone{checkpoints() / "latest", toy / "runs/s/result.json"};
    for (const auto& entry : std::filesystem::directory_iterator(checkpoints())) {
      const std::string name = entry.path().filename().string();
      if (name.rfind("step_", 0) == 0 && std::stoi(name.substr(5)) > step) {
        gone.push_back(entry.path());
      }
    }
    for (const std::filesystem::path& path : gone) {
      std::filesystem::remove_all(path);
    }
    std::filesystem::create_directory_symlink("step_" + std::to_string(step), checkpoints() / "latest");
  }

  Toy toy;
};

/// A script's last statement: the toy job with more keys.
inline std::string job(const std::string& more) { return "return { extends = 'toy.toml', " + more + " }\n"; }

}  // namespace kf::test
