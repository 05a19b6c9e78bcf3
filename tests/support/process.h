#pragma once
// Runs a program from a test: its exit status and everything it wrote.

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kf::test {

struct Options {
  std::filesystem::path cwd = {};               ///< empty: the test's own
  std::map<std::string, std::string> env = {};  ///< set on top of the test's own environment
  std::vector<std::string> unset = {};          ///< variables that the program must not see
  std::string in = {};                          ///< its standard input,
  bool talks = false;                           ///< which stays open for `say`
  std::chrono::seconds timeout{300};            ///< then it is killed, with its children, and `timed_out` is set
};

struct Finished {
  int status = -1;  ///< the exit status; 128 + N when signal N ended it
  std::string out;
  std::string err;
  bool timed_out = false;
};

/// A program that is running. The destructor kills what has not been waited for.
class Process {
 public:
  /// `argv[0]` is looked up in PATH when it has no slash. Throws std::runtime_error when it cannot be started.
  explicit Process(const std::vector<std::string>& argv, Options options = {});
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const;
  /// Reads until `text` is in what it has written (either stream). False when it ends or the time runs out first.
  bool wait_for(std::string_view text);
  /// Its standard input goes on with `text` (Options::talks).
  void say(std::string_view text);
  /// The next line that it writes to standard output, which `wait` then does not give; nothing at its end.
  std::optional<std::string> next_line();
  /// Reads to the end of both streams and collects the status.
  Finished wait();

 private:
  bool pump();

  Options options_;
  std::chrono::steady_clock::time_point deadline_;
  pid_t pid_ = -1;
  int in_ = -1, out_ = -1, err_ = -1;
  std::size_t written_ = 0;  // of options_.in
  Finished result_;
};

/// Starts `argv`, feeds it `options.in`, waits for its end.
Finished run(const std::vector<std::string>& argv, Options options = {});

}  // namespace kf::test
