#pragma once
// A run that trains until it is told to stop, and what is said to it meanwhile.

#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "attach/client.h"
#include "e2e/toy.h"
#include "support/process.h"

namespace kf::test {

/// More than all that is said to a run takes on a busy machine.
inline constexpr std::chrono::seconds kPatience{900};

class Live {
 public:
  static inline const std::string kNever = "1000000000";  // a step that nobody waits for
  /// kf-host with these words, in the toy's folder; the run is `name`.
  explicit Live(const Toy& toy, std::vector<std::string> words = {"toy.toml"}, const std::string& name = "toy")
      : folder_(toy / "runs" / name) {
    words.insert(words.end(), endless().begin(), endless().end());
    Options options;
    options.cwd = toy.folder();
    options.timeout = kPatience;
    process_ = std::make_unique<Process>(toy.command(words), options);
    const attach::Client there(folder_, std::chrono::duration<double>(kPatience).count());  // it listens before its first step
  }
  /// Steps without end on any machine and without interruption, and without rows that nobody takes out of the pipe.
  static const std::vector<std::string>& endless() {
    static const std::vector<std::string> words{"--train.max_steps=" + kNever,     "--scheduler.name=constant",
                                                "--scheduler.warmup_steps=0",      "--eval.interval=" + kNever,
                                                "--checkpoint.interval=" + kNever, "--metrics.sinks=[\"jsonl\"]"};
    return words;
  }

  const std::filesystem::path& folder() const { return folder_; }
  Process& process() { return *process_; }
  attach::Client client() const { return attach::Client(folder_); }
  attach::Answer say(const std::string& chunk) const { return client().ask(attach::Frame::Kind::chunk, chunk); }
  attach::Answer reload() const { return client().ask(attach::Frame::Kind::reload, ""); }
  /// What a chunk prints; the test fails where it ends with an error.
  std::string ask(const std::string& chunk) const {
    const attach::Answer answer = say(chunk);
    INFO(chunk << "\n" << answer.error);
    CHECK(answer.error.empty());
    return answer.output;
  }
  Finished stop() {
    ask("ctx:stop()");
    return process_->wait();
  }

 private:
  std::filesystem::path folder_;
  std::unique_ptr<Process> process_;
};

/// Lines of the run's steering.jsonl.
inline std::size_t entries(const Toy& toy, const std::string& run) {
  const std::string name = "runs/" + run + "/steering.jsonl";
  const std::string file = std::filesystem::exists(toy / name) ? toy.read(name) : "";
  return static_cast<std::size_t>(std::count(file.begin(), file.end(), '\n'));
}

}  // namespace kf::test
