#include "core/stop.h"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include <array>
#include <csignal>
#include <string>

#include "core/running.h"

using namespace kf;

namespace {

/// Runs `body` in a child process; its exit status, 128 + N for signal N.
template <class Body>
int in_child(Body body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(STDERR_FILENO);         // the notice belongs to users
    std::signal(SIGTERM, SIG_DFL);  // instead of the test runner's own
    ::_exit(body());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

TEST_CASE("stop: the first signal only sets a flag", "[stop]") {
  for (const int number : {SIGINT, SIGTERM, SIGUSR1}) {
    CAPTURE(number);
    CHECK(in_child([number] {
            const StopSignals stop;
            const bool before = StopSignals::requested();
            ::raise(number);
            return !before && StopSignals::requested() ? 0 : 1;
          }) == 0);
  }
}

TEST_CASE("stop: the second signal leaves at once with status 130", "[stop]") {
  CHECK(in_child([] {
          const StopSignals stop;
          ::raise(SIGTERM);
          ::raise(SIGINT);
          return 0;
        }) == 130);
}

TEST_CASE("stop: the earlier handlers come back", "[stop]") {
  CHECK(in_child([] {
          { const StopSignals stop; }
          ::raise(SIGTERM);
          return 0;
        }) == 128 + SIGTERM);
}

TEST_CASE("stop: a new run starts without the flag of the last", "[stop]") {
  CHECK(in_child([] {
          {
            const StopSignals stop;
            ::raise(SIGINT);
          }
          const StopSignals stop;
          return StopSignals::requested() ? 1 : 0;
        }) == 0);
}

TEST_CASE("stop: one inside of another shares its flag, and leaves the handlers to it", "[stop]") {
  CHECK(in_child([] {
          const StopSignals outer;
          { const StopSignals inner(60); }
          ::raise(SIGTERM);  // the outer one's handler is there
          const StopSignals late(60);
          return StopSignals::requested() ? 0 : 1;
        }) == 0);
  CHECK(in_child([] {
          const StopSignals outer;
          {
            const StopSignals inner;
            ::raise(SIGTERM);
          }
          return StopSignals::requested() ? 0 : 1;
        }) == 0);
  CHECK(in_child([] {
          const StopSignals outer;
          ::raise(SIGTERM);
          const StopSignals inner(0.1);  // its grace begins although the signal came before
          for (volatile int i = 0;; i = i + 1) {
          }
          return 0;
        }) == 130);
  CHECK(in_child([] {
          {
            const StopSignals outer;
            const StopSignals inner;
          }
          ::raise(SIGTERM);
          return 0;
        }) == 128 + SIGTERM);
}

TEST_CASE("stop: one signal is enough when the grace is over, even for a loop that never looks", "[stop]") {
  CHECK(in_child([] {
          const StopSignals stop(0.2);
          ::raise(SIGTERM);
          for (volatile int i = 0;; i = i + 1) {
          }
          return 0;
        }) == 130);
}

TEST_CASE("stop: the grace ends nothing that comes to its end, and nothing without a signal", "[stop]") {
  CHECK(in_child([] {
          { const StopSignals stop(0.05); }
          {
            const StopSignals stop(0.05);
            ::usleep(150'000);
          }
          {
            const StopSignals stop(10);
            ::raise(SIGTERM);
          }
          ::usleep(50'000);
          return 7;
        }) == 7);
}

TEST_CASE("stop: what was ignored before stays ignored", "[stop]") {
  for (const int number : {SIGINT, SIGTERM, SIGUSR1, SIGHUP}) {
    CAPTURE(number);
    CHECK(in_child([number] {
            std::signal(number, SIG_IGN);
            const StopSignals stop;
            ::raise(number);
            return StopSignals::requested() ? 1 : 0;
          }) == 0);
  }
}

TEST_CASE("running: scopes are written from the inside out", "[stop]") {
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  {
    const Running outer("training", nullptr, 12);
    const Running part("s.lua:5: metric 'm'", ", compute() at step 12");
    const Running drawn("s.lua:7: sampler 'd'", " at token 3");
    const Running inner("s.lua:3: hook 'x'", "step_end", 0);
    Running::write(ends[1]);
  }
  CHECK_FALSE(Running::any());
  Running::write(ends[1]);
  write_plain(ends[1], std::int64_t{-9'223'372'036'854'775'807 - 1});
  ::close(ends[1]);
  std::string text(200, '\0');
  text.resize(static_cast<std::size_t>(::read(ends[0], text.data(), text.size())));
  ::close(ends[0]);
  CHECK(text ==
        "  in s.lua:3: hook 'x', step_end, step 0\n  in s.lua:7: sampler 'd' at token 3\n"
        "  in s.lua:5: metric 'm', compute() at step 12\n  in training, step 12\n-9223372036854775808");
}
