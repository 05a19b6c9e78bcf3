#include "core/stop.h"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include <csignal>

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
