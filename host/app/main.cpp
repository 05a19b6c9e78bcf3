// The program's entry, called by the launcher once torch is loaded. The one catch-all: every failure becomes a message and an exit status.

#include <unistd.h>

#include <cstdio>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "app/command/app.h"
#include "app/line/failure.h"
#include "core/crash.h"
#include "core/error.h"
#include "run/invocation.h"

namespace {

int status_of(int argc, char** argv) {
  try {
    kf::set_invocation(std::vector<std::string>(argv, argv + argc));
    const int status = kf::run_program(std::vector<std::string>(argv + 1, argv + argc));
    if (!std::cout.flush()) {
      std::fputs("kf-host: not everything could be written to standard output\n", stderr);
      return status == 0 ? static_cast<int>(kf::Code::other) : status;
    }
    return status;
  } catch (const std::exception& error) {
    const kf::Failure failure = kf::failure_of(error);
    std::fprintf(stderr, "%s\n", failure.text.c_str());
    return failure.status;
  }
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int kf_main(int argc, char** argv) {
  kf::watch_crashes();
  const int status = status_of(argc, argv);
  // Everything of ours is over. What exit() would do beside is to take torch's thousands of operators out of their table, one by one, which
  // is a fifth of the time of a short command.
  std::fflush(nullptr);
  ::_exit(status);
}
