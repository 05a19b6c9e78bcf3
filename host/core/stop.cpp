#include "core/stop.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstring>

namespace kf {
namespace {

constexpr std::array<int, 4> kSignals{SIGINT, SIGTERM, SIGUSR1, SIGHUP};
std::atomic<int> arrived{0};
std::atomic<void (*)()> listening{nullptr};
std::array<struct sigaction, kSignals.size()> earlier{};
struct sigaction earlier_pipe {};

extern "C" void on_signal(int) {
  // Only async-signal-safe calls here.
  if (arrived.fetch_add(1) > 0) {
    _exit(130);
  }
  constexpr char text[] = "\nstopping after this step (again to leave at once)\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, sizeof text - 1);
  if (void (*const listener)() = listening) {
    listener();
  }
}

}  // namespace

StopSignals::StopSignals() {
  arrived = 0;
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], &action, &earlier[i]);
    if (kSignals[i] == SIGHUP && earlier[i].sa_handler == SIG_IGN) {
      sigaction(SIGHUP, &earlier[i], nullptr);  // nohup means it
    }
  }
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, &earlier_pipe);
}

StopSignals::~StopSignals() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], &earlier[i], nullptr);
  }
  sigaction(SIGPIPE, &earlier_pipe, nullptr);
}

bool StopSignals::requested() { return arrived > 0; }

void StopSignals::set_listener(void (*listener)()) { listening = listener; }

}  // namespace kf
