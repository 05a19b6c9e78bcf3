#include "app/command/restarts.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>

#include "app/command/local_ranks.h"
#include "app/command/passed_signals.h"
#include "config/tree/literal.h"
#include "core/child.h"
#include "core/error.h"
#include "core/fs.h"
#include "run/invocation.h"

namespace kf {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::seconds;

constexpr int kTickMs = 200;
constexpr seconds kFirstPause{1};
constexpr seconds kTrainedForLong{600};
constexpr const char* kWatched = "KF_MAX_RESTARTS";  // tells the program that it is watched

/// Of crashes, and of the kernel for want of memory. Others ask a program to end.
constexpr std::array<int, 6> kCrashes{SIGKILL, SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL};

/// Whether another start may help: what ended it, or one of its ranks (status 128 + signal), was not the job.
bool may_help(const Child::Ending& ending) {
  const int number = ending.signal != 0 ? ending.signal : ending.status - 128;
  return std::find(kCrashes.begin(), kCrashes.end(), number) != kCrashes.end() || ending.status == static_cast<int>(Code::communication) ||
         ending.status == static_cast<int>(Code::machine);
}

/// Of this process and moment.
std::string new_token() {
  return format("{}-{}", static_cast<std::int64_t>(::getpid()), std::chrono::system_clock::now().time_since_epoch().count());
}

class Restarts {
 public:
  Restarts(std::int64_t most, std::int64_t longest_pause, const std::vector<std::string>& args)
      : most_(most), longest_(longest_pause), args_(args) {}

  int run() {
    for (std::int64_t restart = 0;; ++restart) {
      const Clock::time_point begin = Clock::now();
      const Child::Ending ending = once();
      const int status = ending.signal != 0 ? 128 + ending.signal : ending.status;
      if (stopped_ || !may_help(ending)) {
        return status;
      }
      if (restart == most_) {
        say(format("the run ended with {}, and --max-restarts {} is used up", ending.describe(), most_));
        return status;
      }
      pause_ = std::min(longest_, Clock::now() - begin > kTrainedForLong ? kFirstPause : pause_);
      say(format("the run ended with {}; restart {} of {} in {} s", ending.describe(), restart + 1, most_, pause_.count()));
      if (!wait()) {
        say("a signal came before the restart; the same command goes on from the last checkpoint");
        return kStoppedStatus;
      }
      pause_ *= 2;
    }
  }

 private:
  static void say(const std::string& text) { std::fprintf(stderr, "kf-host: %s\n", text.c_str()); }

  /// Starts the program and waits for its end.
  Child::Ending once() {
    std::vector<std::string> argv{fs::read_symlink("/proc/self/exe").string()};
    argv.insert(argv.end(), args_.begin(), args_.end());
    Child child(argv, {{kWatched, std::to_string(most_)}, {kWatchVariable, token_}}, {});
    for (;;) {
      signals_.take([&](int number) {
        stopped_ = true;
        child.signal(number);
      });
      if (const std::optional<Child::Ending> ending = child.poll()) {
        return *ending;
      }
      pollfd news{child.descriptor(), POLLIN, 0};
      ::poll(&news, child.descriptor() >= 0 ? 1 : 0, kTickMs);
    }
  }

  /// False where a signal came meanwhile.
  bool wait() {
    const Clock::time_point end = Clock::now() + pause_;
    while (Clock::now() < end && !stopped_) {
      ::poll(nullptr, 0, kTickMs);
      signals_.take([&](int) { stopped_ = true; });
    }
    return !stopped_;
  }

  std::int64_t most_;
  seconds longest_;
  const std::vector<std::string>& args_;
  std::string token_ = new_token();
  PassedSignals signals_;
  seconds pause_ = kFirstPause;
  bool stopped_ = false;  // by a signal from outside
};

}  // namespace

int run_with_restarts(std::int64_t most, std::int64_t longest_pause, const std::vector<std::string>& args) {
  return Restarts(most, longest_pause, args).run();
}

std::int64_t follow_watcher() {
  const char* const text = std::getenv(kWatched);
  const std::optional<std::int64_t> most = text != nullptr ? config::parse_int(text) : std::nullopt;
  if (most) {
    follow_launcher();
    ::unsetenv(kWatched);  // what this process starts is not watched
  }
  return most.value_or(0);
}

}  // namespace kf
