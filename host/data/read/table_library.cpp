#include "data/read/table_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <mutex>

#include "core/error.h"
#include "core/fs.h"

namespace kf {
namespace {

/// The folder of the library (or test) that this code is part of.
fs::path own_folder() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&open_table_library), &info) == 0 || info.dli_fname == nullptr) {
    return ".";
  }
  return fs::path(info.dli_fname).parent_path();
}

/// Libraries of Arrow from a folder, by their full names; "" or the reason.
std::string load_arrow(const fs::path& folder) {
  std::error_code error;
  for (const char* library : {"libarrow.so.", "libparquet.so."}) {
    fs::path found;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
      if (it->path().filename().string().starts_with(library)) {
        found = it->path();
      }
    }
    if (found.empty()) {
      return format("{} holds no {}*", folder, library);
    }
    if (::dlopen(fs::absolute(found).c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr) {
      return ::dlerror();
    }
  }
  return "";
}

[[noreturn]] void missing(const std::string& reason) {
  fail(Code::data,
       "Parquet and Arrow files are read with the libraries of PyPI's pyarrow, which cannot be loaded: {}\n"
       "  They are looked for in three places; any one will do:\n"
       "    1. the folder in the environment variable KF_ARROW_DIR (with libarrow.so.* in it)\n"
       "    2. a folder or link `pyarrow` beside the kf-host file\n"
       "    3. .deps/pyarrow of the source tree that it was built in (`make deps` puts it there; then build again)",
       reason);
}

OpenTable load() {
  const char* const chosen = std::getenv("KF_ARROW_DIR");
  std::error_code error;
  const fs::path home = own_folder();
  if (chosen != nullptr && *chosen != '\0') {
    if (const std::string reason = load_arrow(chosen); !reason.empty()) {
      missing(format("KF_ARROW_DIR is {}, but {}", chosen, reason));
    }
  } else if (fs::is_directory(home / "pyarrow", error)) {
    if (const std::string reason = load_arrow(home / "pyarrow"); !reason.empty()) {
      missing(reason);
    }
  }
  const char* const module = std::getenv("KF_ARROW_MODULE");  // tests lie elsewhere than the program
  const fs::path path = module != nullptr && *module != '\0' ? fs::path(module) : home / "libkf-arrow.so";
  void* const library = ::dlopen(fs::absolute(path).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    missing(::dlerror());
  }
  const auto version = reinterpret_cast<TableVersion>(::dlsym(library, "kf_table_version"));
  const auto open = reinterpret_cast<OpenTable>(::dlsym(library, "kf_open_table"));
  KF_CHECK(version != nullptr && open != nullptr && version() == kTableModuleVersion, Code::data,
           "{} belongs to another version of kf-host; install both from one build", path);
  return open;
}

}  // namespace

OpenTable open_table_library() {
  static std::mutex mutex;
  static OpenTable open = nullptr;  // stays empty after a failure: the next file says again what is missing
  const std::lock_guard<std::mutex> lock(mutex);
  if (open == nullptr) {
    open = load();
  }
  return open;
}

}  // namespace kf
