// The program's entry, called by the launcher once torch is loaded. The one catch-all: every failure becomes a message and an exit status.

#include <c10/util/Exception.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "app/command/app.h"
#include "core/crash.h"
#include "core/credentials.h"
#include "core/error.h"
#include "core/out_of_memory.h"
#include "run/invocation.h"

namespace {

/// "kf-host: message", or the message alone where it already starts so (reports of several problems do).
void print_failure(const std::string& text) {
  const std::string message = kf::without_credentials(text);
  const bool named = message.rfind("kf-host:", 0) == 0;
  std::fprintf(stderr, "%s%s\n", named ? "" : "kf-host: ", message.c_str());
}

int status_of(int argc, char** argv) {
  try {
    kf::set_invocation(std::vector<std::string>(argv, argv + argc));
    const int status = kf::run_program(std::vector<std::string>(argv + 1, argv + argc));
    if (!std::cout.flush()) {
      print_failure("not everything could be written to standard output");
      return status == 0 ? static_cast<int>(kf::Code::other) : status;
    }
    return status;
  } catch (const kf::Error& e) {
    print_failure(e.what());
    return static_cast<int>(e.code());
  } catch (const c10::AcceleratorError& e) {
    print_failure(std::string("the device failed: ") + e.what_without_backtrace());
    return static_cast<int>(kf::Code::machine);
  } catch (const c10::Error& e) {
    const std::string memory = kf::memory_failure_text(e.what_without_backtrace());
    print_failure(memory.empty() ? std::string("LibTorch: ") + e.what_without_backtrace() : memory);
  } catch (const std::exception& e) {
    print_failure(kf::failure_text(e));
  }
  return static_cast<int>(kf::Code::other);
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
