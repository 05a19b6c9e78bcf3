#include "support/process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <utility>

extern char** environ;

namespace kf::test {
namespace {

struct Pipe {
  int read = -1, write = -1;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw std::runtime_error(std::string("pipe: ") + std::strerror(errno));
  }
  return {ends[0], ends[1]};
}

void close_end(int& fd) {
  if (fd >= 0) {
    ::close(fd);
    fd = -1;
  }
}

std::vector<std::string> environment(const Options& options) {
  std::map<std::string, std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos) {
      all.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
  }
  for (const std::string& name : options.unset) {
    all.erase(name);
  }
  // Tiny models: more threads only get in each other's way. Who sets another number tests that.
  if (std::find(options.unset.begin(), options.unset.end(), "OMP_NUM_THREADS") == options.unset.end()) {
    all.emplace("OMP_NUM_THREADS", "1");
  }
  for (const auto& [name, value] : options.env) {
    all[name] = value;
  }
  std::vector<std::string> out;
  for (const auto& [name, value] : all) {
    out.push_back(name + '=' + value);
  }
  return out;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) {
    out.push_back(text.data());
  }
  out.push_back(nullptr);
  return out;
}

/// Reads what is there; closes the pipe at its end.
void take(int& fd, std::string& into) {
  std::array<char, 65536> buffer{};
  const ssize_t got = ::read(fd, buffer.data(), buffer.size());
  if (got > 0) {
    into.append(buffer.data(), static_cast<std::size_t>(got));
  } else if (got == 0 || (errno != EINTR && errno != EAGAIN)) {
    close_end(fd);
  }
}

}  // namespace

Process::Process(const std::vector<std::string>& argv, Options options)
    : options_(std::move(options)), deadline_(std::chrono::steady_clock::now() + options_.timeout) {
  // A program that ends without reading its input must not end the test.
  std::signal(SIGPIPE, SIG_IGN);
  Pipe in = make_pipe();
  Pipe out = make_pipe();
  Pipe err = make_pipe();
  posix_spawn_file_actions_t actions{};
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.read, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out.write, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.write, STDERR_FILENO);
  if (!options_.cwd.empty()) {
    posix_spawn_file_actions_addchdir_np(&actions, options_.cwd.c_str());
  }
  posix_spawnattr_t attributes{};
  posix_spawnattr_init(&attributes);
  // A group of its own, so that its children end with it; default signals, whatever the test runner ignores.
  sigset_t defaults;
  sigemptyset(&defaults);
  for (const int number : {SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGUSR1}) {
    sigaddset(&defaults, number);
  }
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
  std::vector<std::string> words = argv;
  std::vector<std::string> variables = environment(options_);
  const int error = ::posix_spawnp(&pid_, words.at(0).c_str(), &actions, &attributes, pointers(words).data(), pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  for (int* end : {&in.read, &out.write, &err.write}) {
    close_end(*end);
  }
  in_ = in.write;
  out_ = out.read;
  err_ = err.read;
  if (error != 0) {
    pid_ = -1;
    for (int* end : {&in_, &out_, &err_}) {
      close_end(*end);
    }
    throw std::runtime_error("cannot start " + argv.at(0) + ": " + std::strerror(error));
  }
  ::fcntl(in_, F_SETFL, O_NONBLOCK);
}

Process::~Process() {
  if (pid_ > 0) {
    ::kill(-pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  for (int* end : {&in_, &out_, &err_}) {
    close_end(*end);
  }
}

void Process::signal(int number) const {
  if (pid_ > 0) {
    ::kill(pid_, number);
  }
}

/// Waits once for something to read or write. False at the end of both streams or of the time.
bool Process::pump() {
  const bool all_said = written_ == options_.in.size();
  if (in_ >= 0 && all_said && !options_.talks) {
    close_end(in_);
  }
  if (out_ < 0 && err_ < 0) {
    return false;
  }
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - std::chrono::steady_clock::now()).count();
  if (left <= 0) {
    result_.timed_out = true;
    ::kill(-pid_, SIGKILL);
    return false;
  }
  std::array<pollfd, 3> ends{pollfd{out_, POLLIN, 0}, pollfd{err_, POLLIN, 0}, pollfd{all_said ? -1 : in_, POLLOUT, 0}};
  if (::poll(ends.data(), ends.size(), static_cast<int>(std::min<long long>(left, 1000))) <= 0) {
    return true;  // interrupted, or nothing yet
  }
  if (ends[0].revents != 0) {
    take(out_, result_.out);
  }
  if (ends[1].revents != 0) {
    take(err_, result_.err);
  }
  if (ends[2].revents != 0) {
    const ssize_t wrote = ::write(in_, options_.in.data() + written_, options_.in.size() - written_);
    if (wrote >= 0) {
      written_ += static_cast<std::size_t>(wrote);
    } else if (errno != EAGAIN && errno != EINTR) {
      close_end(in_);  // it has stopped reading
    }
  }
  return true;
}

bool Process::wait_for(std::string_view text) {
  do {
    if (result_.out.find(text) != std::string::npos || result_.err.find(text) != std::string::npos) {
      return true;
    }
  } while (pump());
  return false;
}

void Process::say(std::string_view text) { options_.in += text; }

std::optional<std::string> Process::next_line() {
  do {
    if (const std::size_t end = result_.out.find('\n'); end != std::string::npos) {
      std::string line = result_.out.substr(0, end);
      result_.out.erase(0, end + 1);
      return line;
    }
  } while (pump());
  return std::nullopt;
}

Finished Process::wait() {
  options_.talks = false;
  while (pump()) {
  }
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  result_.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return std::exchange(result_, {});
}

Finished run(const std::vector<std::string>& argv, Options options) { return Process(argv, std::move(options)).wait(); }

}  // namespace kf::test
