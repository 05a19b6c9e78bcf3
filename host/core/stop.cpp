#include "core/stop.h"

#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>
#include <ctime>
#include <limits>

#include "core/log.h"
#include "core/running.h"

namespace kf {
namespace {

constexpr std::array<int, 4> kSignals{SIGINT, SIGTERM, SIGUSR1, SIGHUP};
std::atomic<int> arrived{0};
std::atomic<double> arrived_at{0};  // seconds of the steady clock
std::atomic<void (*)()> listening{nullptr};
std::atomic<sem_t*> waking{nullptr};  // of the watchdog
std::atomic<int> notices{STDERR_FILENO};
std::array<struct sigaction, kSignals.size()> earlier{};
struct sigaction earlier_pipe {};

pthread_t owner{};  // the thread that made the StopSignals
int depth = 0;      // how many there are, one inside of another

double steady_seconds() {
  struct timespec now {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

extern "C" void on_signal(int number) {
  // Only async-signal-safe calls here.
  if (pthread_equal(pthread_self(), owner) == 0) {  // a signal to the process may come to any thread; what listens belongs to one
    pthread_kill(owner, number);
    return;
  }
  if (arrived.fetch_add(1) > 0) {
    _exit(130);
  }
  arrived_at = steady_seconds();
  constexpr char text[] = "\nstopping after this step (again to leave at once)\n";
  [[maybe_unused]] const ssize_t written = ::write(notices, text, sizeof text - 1);
  if (sem_t* const watchdog = waking) {
    sem_post(watchdog);
  }
  if (void (*const listener)() = listening) {
    listener();
  }
}

}  // namespace

/// Sleeps until the first signal, then until the grace is over; the process then ends, unless this was destroyed before.
class StopSignals::Watchdog {
 public:
  explicit Watchdog(double grace) : grace_(grace) {
    sem_init(&wake_, 0, 0);
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);  // the new thread takes no signal
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, std::size_t{64} << 10);
    runs_ = pthread_create(
                &thread_, &attributes,
                [](void* self) -> void* {
                  static_cast<Watchdog*>(self)->watch();
                  return nullptr;
                },
                this) == 0;
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (runs_) {
      outer_ = waking.exchange(&wake_);
      if (arrived > 0) {  // before this one was there
        sem_post(&wake_);
      }
    } else {
      log::warn("train.shutdown_timeout_sec has no effect: no thread could be started for it ({})", std::strerror(errno));
    }
  }
  ~Watchdog() {
    over_ = true;
    if (runs_) {
      waking = outer_;
      if (outer_ != nullptr && arrived > 0) {
        sem_post(outer_);
      }
      sem_post(&wake_);
      pthread_join(thread_, nullptr);
    }
    sem_destroy(&wake_);
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void watch() {
    while (sem_wait(&wake_) != 0) {
    }
    if (over_) {
      return;
    }
    struct timespec end {};
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += static_cast<time_t>(grace_);
    end.tv_nsec += static_cast<long>((grace_ - std::floor(grace_)) * 1e9);
    if (end.tv_nsec >= 1'000'000'000) {
      ++end.tv_sec;
      end.tv_nsec -= 1'000'000'000;
    }
    while (!over_) {  // it may be woken twice, by the signal and for having come before
      if (sem_clockwait(&wake_, CLOCK_MONOTONIC, &end) != 0 && errno == ETIMEDOUT) {
        leave();
      }
    }
  }

  void leave() const {
    report("\nkf-host: train.shutdown_timeout_sec (");
    report(static_cast<std::int64_t>(grace_));
    report(") is over, and the run has not come to its end; it leaves without a further save\n");
    Running::report();
    _exit(130);
  }

  double grace_;
  std::atomic<bool> over_{false};
  bool runs_ = false;
  sem_t* outer_ = nullptr;  // of the watchdog around this one, which no signal wakes meanwhile
  sem_t wake_{};
  pthread_t thread_{};
};

namespace {

void take_signals() {
  arrived = 0;
  owner = pthread_self();
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], &action, &earlier[i]);
    if (earlier[i].sa_handler == SIG_IGN) {
      sigaction(kSignals[i], &earlier[i], nullptr);  // who starts a program so means it
    }
  }
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, &earlier_pipe);
}

}  // namespace

StopSignals::StopSignals(double grace) : grace_(grace) {
  if (depth++ == 0) {
    take_signals();
  }
  constexpr double kLongest = 1e9;  // seconds; more is for ever
  if (grace < kLongest) {
    watchdog_ = std::make_unique<Watchdog>(grace);
  }
}

StopSignals::~StopSignals() {
  watchdog_.reset();
  if (--depth > 0) {
    return;
  }
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], &earlier[i], nullptr);
  }
  sigaction(SIGPIPE, &earlier_pipe, nullptr);
}

bool StopSignals::requested() { return arrived > 0; }

double StopSignals::seconds_left() const {
  return requested() ? std::max(0.0, grace_ - (steady_seconds() - arrived_at)) : std::numeric_limits<double>::infinity();
}

void StopSignals::tell(int fd) { notices = fd; }

void StopSignals::set_listener(void (*listener)()) { listening = listener; }

}  // namespace kf
