// Starts kf-host: finds torch, then loads the program proper (libkf-host.so beside this file) and calls its kf_main.
// A program linked to torch would die in the dynamic linker, before it could say what is missing.

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "app/doctor/doctor.h"
#include "app/help/help.h"
#include "app/help/version.h"

namespace fs = std::filesystem;

namespace {

/// Torch looks its own functions up when it calls them first: all at once would take a tenth of the time that loading takes. What
/// libkf-host.so needs of it is looked up at once all the same (it is linked so), so that another version of torch is told at the start.
constexpr int kLoad = RTLD_LAZY | RTLD_GLOBAL;

/// Loads torch from `folder` by absolute path; the libraries that libkf-host.so names are then already there. "" or the reason.
std::string load_torch(const fs::path& folder) {
  for (const char* library : {"libc10.so", "libtorch_cpu.so"}) {
    const fs::path file = fs::absolute(folder / "lib" / library);
    if (::dlopen(file.c_str(), kLoad) == nullptr) {
      return ::dlerror();
    }
  }
  return "";
}

/// A standard stream that was closed would lend its number to the first file that is opened, a checkpoint say, and be written into it.
void keep_standard_streams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) < 0) {
      (void)::open("/dev/null", O_RDWR);  // takes the lowest free number, which is `fd`
    }
  }
}

/// " (ulimit -v is 400000)" where the address space is limited, else "".
std::string address_limit() {
  struct rlimit limit {};
  const bool limited = ::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return limited ? " (ulimit -v is " + std::to_string(limit.rlim_cur / 1024) + ")" : "";
}

/// Libraries that run out of memory while they are loaded end the process here: nobody could catch what their constructors throw.
[[noreturn]] void out_of_memory() {
  std::fprintf(
      stderr,
      "kf-host: there is not enough memory%s to load torch, which takes about 0.6 GB of address space before any data and weights;\n"
      "  `ulimit -v unlimited` lifts the shell's limit, a container or a batch system has one of its own\n",
      address_limit().c_str());
  std::_Exit(1);
}

int torch_missing(const std::string& reason) {
  if (reason.find("failed to map") != std::string::npos || reason.find("annot allocate memory") != std::string::npos) {
    out_of_memory();
  }
  std::fprintf(stderr,
               "kf-host: cannot load torch: %s\n"
               "  It is looked for in three places; any one will do:\n"
               "    1. the folder in the environment variable KF_TORCH_DIR (with lib/libtorch_cpu.so in it)\n"
               "    2. a folder or link `torch` beside the kf-host file\n"
               "    3. .deps/torch of the source tree that it was built in (`make deps` puts it there)\n",
               reason.c_str());
  return 1;
}

/// Prints what needs no torch: help and version. They answer at once, also where torch is missing.
bool answer_alone(int argc, char** argv) {
  const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  const std::string text = words == std::vector<std::string>{"--version"} ? kf::version_text() : kf::help_asked(words);
  std::fputs(text.c_str(), stdout);
  return !text.empty();
}

/// The status of what has been printed, which is another one where standard output did not take it all.
int status_written(int status) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) {
    return status;
  }
  std::fputs("kf-host: not everything could be written to standard output\n", stderr);
  return status == 0 ? 1 : status;
}

struct Program {
  void* handle = nullptr;
  std::string fault = {};  // why there is none,
  bool of_torch = false;   // and whose
};

Program open_program(const fs::path& home) {
  std::error_code error;
  const char* chosen = std::getenv("KF_TORCH_DIR");
  if (chosen != nullptr && *chosen != '\0') {
    if (const std::string reason = load_torch(chosen); !reason.empty()) {
      return {nullptr, "KF_TORCH_DIR is " + std::string(chosen) + ", but " + reason, true};
    }
  } else if (fs::exists(home / "torch" / "lib", error)) {
    if (const std::string reason = load_torch(home / "torch"); !reason.empty()) {
      return {nullptr, reason, true};
    }
  }
  void* const program = ::dlopen((home / "libkf-host.so").c_str(), kLoad);
  if (program != nullptr) {
    return {program};
  }
  const std::string reason = ::dlerror();
  const auto names = [&](const char* library) { return reason.find(library) != std::string::npos; };
  return {nullptr, reason, names("libtorch") || names("libc10") || names("libcu")};
}

/// The program: loads what it needs and runs it.
int start_program(int argc, char** argv) {
  keep_standard_streams();
  if (answer_alone(argc, argv)) {
    return status_written(0);
  }
  // OpenMP threads that wait by spinning take the cores away from the ones they wait for as soon as anything else runs on the machine: a
  // step was seen to take twenty times as long. A short spin costs nothing measurable. Read when libgomp is loaded, so set here; the user's
  // own wins.
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) {
    ::setenv("GOMP_SPINCOUNT", "1000", /*overwrite=*/0);
  }
  std::error_code error;
  const fs::path home = fs::read_symlink("/proc/self/exe", error).parent_path();
  if (error) {
    std::fprintf(stderr, "kf-host: cannot find its own folder: %s\n", error.message().c_str());
    return 1;
  }
  if (argc > 1 && std::string_view(argv[1]) == "doctor") {  // also where torch is missing
    return status_written(kf::doctor({argv + 2, argv + argc}, {home, [&home] { return open_program(home).fault; }}));
  }
  const Program program = open_program(home);
  if (program.handle == nullptr && program.of_torch) {
    return torch_missing(program.fault);
  }
  if (program.handle == nullptr) {
    std::fprintf(stderr, "kf-host: %s\n", program.fault.c_str());
    return 1;
  }
  const auto start = reinterpret_cast<int (*)(int, char**)>(::dlsym(program.handle, "kf_main"));
  if (start == nullptr) {
    std::fprintf(stderr, "kf-host: libkf-host.so in %s belongs to another version: %s\n", home.c_str(), ::dlerror());
    return 1;
  }
  return start(argc, argv);
}

struct Arguments {
  int count;
  char** words;
  int status;
};

/// The program runs on a stack of its own: large enough that Lua's own limit ends a recursion through its library (a string.gsub within a
/// string.gsub takes 9 kB a level) before the stack is full, and that a small `ulimit -s` does not matter. Only what is used is memory.
constexpr std::size_t kOwn = std::size_t{64} << 20;
/// Threads of the libraries get stacks as large as the limit says; below kLeast they get kThread.
constexpr std::size_t kLeast = std::size_t{1} << 20;
constexpr std::size_t kThread = std::size_t{2} << 20;

/// Bytes of `ulimit -s`; the largest number where there is no limit.
rlim_t stack_limit() {
  struct rlimit limit {};
  return ::getrlimit(RLIMIT_STACK, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

int start_on_own_stack(int argc, char** argv) {
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  if (stack_limit() < kLeast) {
    ::pthread_attr_setstacksize(&attributes, kThread);
    ::pthread_setattr_default_np(&attributes);
  }
  ::pthread_attr_setstacksize(&attributes, kOwn);
  Arguments arguments{argc, argv, 1};
  pthread_t thread{};
  const int error = ::pthread_create(
      &thread, &attributes,
      [](void* given) -> void* {
        auto* const own = static_cast<Arguments*>(given);
        own->status = start_program(own->count, own->words);
        return nullptr;
      },
      &arguments);
  ::pthread_attr_destroy(&attributes);
  if (error != 0) {
    out_of_memory();
  }
  ::pthread_join(thread, nullptr);
  return arguments.status;
}

}  // namespace

int main(int argc, char** argv) {
  std::set_terminate(out_of_memory);
  return stack_limit() < kOwn ? start_on_own_stack(argc, argv) : start_program(argc, argv);
}
