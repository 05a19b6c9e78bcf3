#pragma once
// A child process, started without a shell, with its output in a file.

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/fs.h"

namespace kf::sweep {

class Child {
 public:
  /// Starts `argv` (argv[0] is a path) in a process group of its own, so that the terminal's Ctrl-C reaches the parent alone, with
  /// `environment` on top of ours, nothing to read, and both outputs appended to `output`. Throws Code::other.
  Child(const std::vector<std::string>& argv, const std::map<std::string, std::string>& environment, const fs::path& output);
  /// Kills what still runs.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  /// To wait with poll(): readable when the child has ended; -1 where the system has no such thing.
  int descriptor() const { return descriptor_; }
  void signal(int number) const;

  struct Ending {
    int status = 0;  // exit status, where no signal ended it
    int signal = 0;
    /// "status 3", "killed by signal 9 (Killed; out of memory?)".
    std::string describe() const;
  };
  /// How it ended; nothing while it runs.
  std::optional<Ending> poll();

 private:
  pid_t pid_ = -1;
  int descriptor_ = -1;
  std::optional<Ending> ending_;
};

/// The end of a failed program's output, one line: its message ("kf-host: ...") where there is one, else the last line.
std::string failure_line(const fs::path& output);

}  // namespace kf::sweep
