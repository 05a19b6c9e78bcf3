#include "unit/data/hub/server.h"

#include <cstdlib>
#include <stdexcept>

#include "core/text.h"

namespace kf::test {

HubServer::HubServer() {
  fs::create_directories(dir_ / "root/org/set");
  fs::create_directories(dir_ / "state");
  Options options;
  options.timeout = std::chrono::seconds(300);
  process_ = std::make_unique<Process>(std::vector<std::string>{"python3", std::string(KF_SOURCE_DIR) + "/tests/support/hub_server.py",
                                                                (dir_ / "root").string(), (dir_ / "state").string()},
                                       options);
  if (!process_->wait_for("ready")) {
    throw std::runtime_error("the stand-in for the hub did not start: " + process_->wait().err);
  }
  port_ = read_file(dir_ / "state/port");
}

std::string HubServer::endpoint(const std::string& mode) const { return "http://127.0.0.1:" + port_ + "/" + mode; }

std::vector<std::string> HubServer::requests(const std::string& part) const {
  std::vector<std::string> out;
  for (const std::string& line : split(read_file(dir_ / "state/requests"), '\n')) {
    if (line.find(part) != std::string::npos) {
      out.push_back(line);
    }
  }
  return out;
}

Environment::Environment(std::vector<std::pair<std::string, std::string>> values) : values_(std::move(values)) {
  for (const auto& [name, value] : values_) {
    ::setenv(name.c_str(), value.c_str(), 1);
  }
}

Environment::~Environment() {
  for (const auto& entry : values_) {
    ::unsetenv(entry.first.c_str());
  }
}

}  // namespace kf::test
