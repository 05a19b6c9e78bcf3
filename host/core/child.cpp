#include "core/child.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "core/error.h"
#include "core/text.h"

extern char** environ;

namespace kf {
namespace {

/// posix_spawn's two objects.
class Setup {
 public:
  explicit Setup(const ChildOutput& output) : file_(output.file.string()) {
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!file_.empty()) {
      posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, file_.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    } else if (output.descriptor >= 0) {
      posix_spawn_file_actions_adddup2(&actions, output.descriptor, STDOUT_FILENO);
    }
    if (!file_.empty() || output.descriptor >= 0) {
      posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    }
    posix_spawnattr_init(&attributes);
    // Handlers do not survive exec, but ignored signals and the mask would.
    sigset_t all;
    sigset_t none;
    sigfillset(&all);
    sigemptyset(&none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  }
  ~Setup() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  Setup(const Setup&) = delete;
  Setup& operator=(const Setup&) = delete;

  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};

 private:
  std::string file_;
};

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) {
    out.push_back(text.data());
  }
  out.push_back(nullptr);
  return out;
}

std::vector<std::string> merged_environment(const std::map<std::string, std::string>& over) {
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (over.count(text.substr(0, text.find('='))) == 0) {
      out.push_back(text);
    }
  }
  for (const auto& [name, value] : over) {
    out.push_back(name + "=" + value);
  }
  return out;
}

}  // namespace

Child::Child(const std::vector<std::string>& argv, const std::map<std::string, std::string>& environment, const ChildOutput& output) {
  const Setup setup(output);
  std::vector<std::string> words = argv;
  std::vector<std::string> variables = merged_environment(environment);
  const int error =
      ::posix_spawn(&pid_, words[0].c_str(), &setup.actions, &setup.attributes, pointers(words).data(), pointers(variables).data());
  KF_CHECK(error == 0, Code::other, "cannot start {}: {}", words[0], std::strerror(error));
  descriptor_ = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
}

Child::~Child() {
  if (!poll()) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  if (descriptor_ >= 0) {
    ::close(descriptor_);
  }
}

void Child::signal(int number) const {
  if (!ending_) {
    ::kill(pid_, number);
  }
}

std::optional<Child::Ending> Child::poll() {
  int status = 0;
  if (!ending_ && ::waitpid(pid_, &status, WNOHANG) == pid_) {
    ending_ = WIFSIGNALED(status) ? Ending{0, WTERMSIG(status)} : Ending{WEXITSTATUS(status), 0};
  }
  return ending_;
}

std::string Child::Ending::describe() const {
  if (signal == 0) {
    return format("status {}", status);
  }
  return format("killed by signal {} ({}{})", signal, ::strsignal(signal), signal == SIGKILL ? "; out of memory?" : "");
}

}  // namespace kf
