#pragma once
// The stand-in for the hub (tests/support/hub_server.py) and a data set on it.

#include <memory>
#include <string>
#include <vector>

#include "core/fs.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace kf::test {

class HubServer {
 public:
  HubServer();

  /// "http://127.0.0.1:PORT/MODE".
  std::string endpoint(const std::string& mode) const;
  /// Puts a file into the data set "org/set".
  void add(const std::string& path, const std::string& content) const { add_to("org/set", path, content); }
  /// Into another repository, as data set and as model.
  void add_to(const std::string& name, const std::string& path, const std::string& content) const {
    dir_.write(fs::path("root") / name / path, content);
  }
  /// Lines "HOST PATH RANGE AUTHORIZATION" of the requests so far whose path holds `part`.
  std::vector<std::string> requests(const std::string& part) const;
  const fs::path& folder() const { return dir_.path(); }

 private:
  TempDir dir_;
  std::unique_ptr<Process> process_;
  std::string port_;
};

/// Sets variables of the environment and puts them back.
class Environment {
 public:
  explicit Environment(std::vector<std::pair<std::string, std::string>> values);
  ~Environment();
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  std::vector<std::pair<std::string, std::string>> values_;
};

}  // namespace kf::test
