#include "core/stacks/stacks.h"

#include <execinfo.h>
#include <fcntl.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <ctime>
#include <mutex>
#include <thread>
#include <vector>

#include "core/descriptor.h"
#include "core/fs.h"
#include "core/running.h"
#include "core/stacks/symbols.h"
#include "core/text.h"

namespace kf {
namespace {

constexpr int kMostFrames = 200;
constexpr std::chrono::seconds kAnswerTime{1};
constexpr std::chrono::milliseconds kScriptTime{2000};  // Lua is asked at its next instruction
constexpr std::chrono::milliseconds kLook{10};

std::atomic<const ScriptStack*> script_stack{nullptr};

/// One thread at a time answers here.
struct Answer {
  std::atomic<pid_t> asked{0};  // the thread; it takes the question by putting 0
  std::array<void*, kMostFrames> frames{};
  int count = 0;
  sem_t there{};
};
Answer answer;

int signal_number() { return SIGRTMIN + 5; }

extern "C" void on_question(int) {
  const int kept = errno;
  pid_t mine = static_cast<pid_t>(::syscall(SYS_gettid));
  if (answer.asked.compare_exchange_strong(mine, 0)) {
    answer.count = ::backtrace(answer.frames.data(), kMostFrames);
    if (const ScriptStack* const script = script_stack; script != nullptr && ::pthread_equal(::pthread_self(), script->thread) != 0) {
      script->ask();
    }
    ::sem_post(&answer.there);
  }
  errno = kept;
}

bool waits_for_answer(std::chrono::seconds longest) {
  struct timespec end {};
  ::clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += longest.count();
  while (::sem_timedwait(&answer.there, &end) != 0) {
    if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

std::string name_of(pid_t thread) {
  const fs::path file = fs::path("/proc/self/task") / std::to_string(thread) / "comm";
  std::array<char, 32> text{};
  const Descriptor open(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  const ssize_t got = open.get() >= 0 ? ::read(open.get(), text.data(), text.size() - 1) : 0;
  return got > 1 ? std::string(text.data(), static_cast<std::size_t>(got) - 1) : "?";
}

std::string stack_of(pid_t thread, const Symbols& symbols) {
  std::string out = format("thread {} ({}):\n", thread, name_of(thread));
  answer.asked = thread;
  if (::syscall(SYS_tgkill, ::getpid(), thread, signal_number()) != 0) {
    answer.asked = 0;
    return out + "  it has just ended\n";
  }
  if (!waits_for_answer(kAnswerTime)) {
    if (answer.asked.exchange(0) == thread) {
      return out + "  it does not answer: it waits inside of the kernel, or blocks signals\n";
    }
    waits_for_answer(kAnswerTime);  // it has just begun to
  }
  // The first two are the handler and what the kernel has put before it.
  for (int i = std::min(2, answer.count); i < answer.count; ++i) {
    out += "  " + symbols.describe(reinterpret_cast<std::uintptr_t>(answer.frames.at(static_cast<std::size_t>(i)))) + "\n";
  }
  return out;
}

std::vector<pid_t> threads() {
  std::vector<pid_t> out;
  const auto mine = static_cast<pid_t>(::syscall(SYS_gettid));  // it is the one that asks
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc/self/task")) {
    const auto thread = static_cast<pid_t>(std::stol(entry.path().filename().string()));
    if (thread != mine) {
      out.push_back(thread);
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::string scopes() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return {};
  }
  const Descriptor read(ends[0]);
  {
    const Descriptor write(ends[1]);
    ::fcntl(ends[1], F_SETFL, O_NONBLOCK);  // a pipe holds 64 KiB, and nobody reads before the end
    Running::write(ends[1]);
  }
  std::string out(std::size_t{1} << 16, '\0');
  const ssize_t got = ::read(read.get(), out.data(), out.size());
  out.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return out;
}

std::string script_part() {
  const ScriptStack* const script = script_stack;
  if (script == nullptr) {
    return {};
  }
  for (std::chrono::milliseconds waited{0}; waited < kScriptTime; waited += kLook) {
    if (const std::string stack = script->take(); !stack.empty()) {
      return "Lua:\n" + stack + "\n";
    }
    std::this_thread::sleep_for(kLook);
  }
  return format("Lua: no instruction was run in {} s: it is not on, or is in a call of the program, or in compiled code\n",
                kScriptTime.count() / 1000);
}

}  // namespace

void set_script_stack(const ScriptStack* script) { script_stack = script; }

std::string stacks_of_all_threads() {
  static std::mutex one;
  const std::lock_guard<std::mutex> lock(one);
  std::array<void*, 2> warm{};
  ::backtrace(warm.data(), static_cast<int>(warm.size()));  // loads what it needs now, and not in a handler
  ::sem_init(&answer.there, 0, 0);
  struct sigaction action {};
  struct sigaction earlier {};
  action.sa_handler = on_question;
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  ::sigaction(signal_number(), &action, &earlier);
  const Symbols symbols;
  std::string out;
  for (const pid_t thread : threads()) {
    out += stack_of(thread, symbols) + "\n";
  }
  const std::string running = scopes();
  out += "the thread that trains runs:\n" + (running.empty() ? "  nothing that is known\n" : running) + "\n" + script_part();
  return out;
}

}  // namespace kf
