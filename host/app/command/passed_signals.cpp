#include "app/command/passed_signals.h"

#include <array>
#include <atomic>
#include <csignal>

namespace kf {
namespace {

constexpr std::array<int, 4> kPassed{SIGINT, SIGTERM, SIGUSR1, SIGHUP};

std::atomic<int>& count_of(int number) {
  static std::atomic<int> counts[NSIG] = {};  // free of locks, so a handler may
  return counts[number];
}

}  // namespace

PassedSignals::PassedSignals() {
  for (const int number : kPassed) {
    struct sigaction action {};
    if (::sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) {
      continue;
    }
    action = {};
    action.sa_handler = [](int arrived) { count_of(arrived)++; };
    action.sa_flags = SA_RESTART;
    ::sigaction(number, &action, nullptr);
  }
}

void PassedSignals::take(const std::function<void(int number)>& send) {
  for (const int number : kPassed) {
    for (; count_of(number) > 0; count_of(number)--) {
      send(number);
    }
  }
}

}  // namespace kf
