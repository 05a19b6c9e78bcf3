#include "core/crash.h"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <string>

#include "core/out_of_memory.h"
#include "core/running.h"

namespace kf {
namespace {

struct Kind {
  int signal;
  const char* text;
};
constexpr std::array<Kind, 5> kKinds{{
    {SIGSEGV, "SIGSEGV, memory that is not the program's was touched"},
    {SIGBUS, "SIGBUS, memory without content was touched (a mapped file that became shorter?)"},
    {SIGFPE, "SIGFPE, a division of whole numbers by zero"},
    {SIGILL, "SIGILL, an instruction that this processor does not know"},
    {SIGABRT, "SIGABRT, a library gave up (its own message stands above, if it had one)"},
}};

std::atomic<int> runs_on{0};
std::uintptr_t stack_lowest = 0;  // of the main thread

/// A fault just below the stack is a stack that is full.
bool in_guard(const siginfo_t* info) {
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  constexpr std::uintptr_t kNear = std::uintptr_t{1} << 20;
  return stack_lowest != 0 && address + kNear > stack_lowest && address < stack_lowest + kNear / 16;
}

void say_rest() {
  Running::report();
  if (runs_on > 0) {
    report("What was saved is whole: the same command goes on from the last checkpoint.\n");
  }
}

extern "C" void on_crash(int signal, siginfo_t* info, void*) {
  // Only async-signal-safe calls here. The handler is reset already: a second fault ends the process at once.
  report("\nkf-host: ");
  for (const Kind& kind : kKinds) {
    if (kind.signal == signal) {
      report(signal == SIGSEGV && in_guard(info) ? "SIGSEGV, the stack is full: calls without an end?" : kind.text);
    }
  }
  report("\n");
  say_rest();
  ::raise(signal);  // blocked until this returns; then it ends the process as it would have without us
}

/// An exception that no thread catches, mostly for want of memory.
[[noreturn]] void on_terminate() {
  std::string text = "a thread ended in a way that the program does not know";
  try {
    if (const std::exception_ptr error = std::current_exception()) {
      std::rethrow_exception(error);
    }
  } catch (const std::exception& error) {
    text = failure_text(error);
  } catch (...) {  // of a kind that says nothing; no Lua runs on after this
  }
  report(("\nkf-host: " + text + "\n").c_str());
  say_rest();
  ::_exit(1);
}

void on_exit() {
  if (runs_on > 0) {
    report("\nkf-host: exit() was called inside of a run, which is not saved; ctx:stop(reason) ends one\n");
    say_rest();
    ::_exit(1);
  }
  if (Running::any()) {
    report("\nkf-host: exit() was called by what ran, and nothing behind it was done; return, or error(), ends a script\n");
    say_rest();
    ::_exit(1);
  }
}

}  // namespace

void watch_crashes() {
  static std::array<char, std::size_t{64} << 10> stack;  // a full stack has no room for a handler
  stack_t alternate{};
  alternate.ss_sp = stack.data();
  alternate.ss_size = stack.size();
  ::sigaltstack(&alternate, nullptr);
  pthread_attr_t attributes;
  if (::pthread_getattr_np(::pthread_self(), &attributes) == 0) {
    void* lowest = nullptr;
    std::size_t size = 0;
    ::pthread_attr_getstack(&attributes, &lowest, &size);
    ::pthread_attr_destroy(&attributes);
    stack_lowest = reinterpret_cast<std::uintptr_t>(lowest);
  }
  for (const Kind& kind : kKinds) {
    struct sigaction earlier {};
    ::sigaction(kind.signal, nullptr, &earlier);
    if (earlier.sa_handler == SIG_DFL) {
      struct sigaction action {};
      action.sa_sigaction = on_crash;
      action.sa_flags = SA_SIGINFO | SA_ONSTACK | static_cast<int>(SA_RESETHAND);
      ::sigaction(kind.signal, &action, nullptr);
    }
  }
  std::set_terminate(on_terminate);
  (void)std::atexit(on_exit);
}

RunIsOn::RunIsOn() { ++runs_on; }

RunIsOn::~RunIsOn() { --runs_on; }

}  // namespace kf
