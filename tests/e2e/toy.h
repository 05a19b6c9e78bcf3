#pragma once
// A job that trains in a second, in a folder of its own, and what a test wants to know of it afterwards.

#include <map>
#include <string>
#include <vector>

#include "support/process.h"
#include "support/temp_dir.h"

namespace kf::test {

class Toy {
 public:
  /// Writes toy.toml and some text to learn from.
  Toy();

  /// kf-host toy.toml and `more`, in the folder.
  Finished train(const std::vector<std::string>& more = {}) const;
  /// As train, for a run that a case begins with: what an earlier case of this program has trained by the same words, from the same job and
  /// text, is copied. REQUIREs that it is complete.
  void trained(const std::vector<std::string>& more = {}) const;
  /// kf-host with these arguments, in the folder.
  Finished host(const std::vector<std::string>& args) const;
  std::vector<std::string> command(const std::vector<std::string>& args) const;

  const std::filesystem::path& folder() const { return dir_.path(); }
  std::filesystem::path operator/(const std::filesystem::path& name) const { return dir_ / name; }
  std::filesystem::path write(const std::filesystem::path& name, std::string_view content) const { return dir_.write(name, content); }
  std::string read(const std::filesystem::path& name) const;

  /// step -> the value of `key`, from the rows of metrics.jsonl that have it, in the text of the file (compare with == for bits).
  std::map<int, std::string> series(const std::string& run, const std::string& key) const;

 private:
  TempDir dir_;
};

/// The lines of a page's ```sh blocks that call kf-host.
std::vector<std::string> commands_of(const std::filesystem::path& page);

}  // namespace kf::test
