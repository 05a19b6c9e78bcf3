#pragma once
// A child process, started without a shell.

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/fs.h"

namespace kf {

/// Where a child's outputs go, both to the same place.
struct ChildOutput {
  fs::path file = {};   // appended there,
  int descriptor = -1;  // or written there; neither: they are those of this process
};

class Child {
 public:
  /// Starts `argv` (argv[0] is a path) in a process group of its own, so that the terminal's Ctrl-C reaches the parent alone, with
  /// `environment` on top of ours and nothing to read. Throws Code::other.
  Child(const std::vector<std::string>& argv, const std::map<std::string, std::string>& environment, const ChildOutput& output);
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

}  // namespace kf
