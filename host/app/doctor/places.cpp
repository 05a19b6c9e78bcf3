// Disks.

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "app/doctor/looks.h"
#include "core/descriptor.h"
#include "core/network_disk.h"
#include "core/text.h"

namespace kf {
namespace {

using State = Finding::State;

constexpr std::size_t kTried = std::size_t{64} << 20;  // bytes that are written
constexpr double kGigabyte = 1e9;

/// The nearest folder that is there.
fs::path there(fs::path folder) {
  std::error_code ignored;
  folder = fs::absolute(folder / ".").lexically_normal().parent_path();
  while (!fs::is_directory(folder, ignored) && folder.has_relative_path()) {
    folder = folder.parent_path();
  }
  return folder;
}

double free_bytes(const fs::path& folder) {
  struct statvfs about {};
  return ::statvfs(folder.c_str(), &about) == 0 ? static_cast<double>(about.f_bavail) * static_cast<double>(about.f_frsize) : 0;
}

/// A file without a name in `folder`, gone when it is closed, or one whose name is taken away at once. Negative where none can be made.
int nameless_file(const fs::path& folder) {
  const int fd = ::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  if (fd >= 0 || errno == EACCES || errno == EROFS) {
    return fd;
  }
  std::string name = (folder / ".kf-doctor-XXXXXX").string();  // a file system that has no nameless ones
  const int named = ::mkstemp(name.data());
  if (named >= 0) {
    ::unlink(name.c_str());
  }
  return named;
}

/// Bytes a second of a write that is durable; "" or why there was none.
std::string write_speed(const fs::path& folder, double& speed) {
  const int fd = nameless_file(folder);
  if (fd < 0) {
    return std::strerror(errno);
  }
  const Descriptor file(fd);
  const std::vector<char> some(std::size_t{1} << 20, 'k');
  const auto begin = std::chrono::steady_clock::now();
  for (std::size_t done = 0; done < kTried; done += some.size()) {
    if (::write(file.get(), some.data(), some.size()) != static_cast<ssize_t>(some.size())) {
      return std::strerror(errno);
    }
  }
  if (::fsync(file.get()) != 0) {
    return std::strerror(errno);
  }
  speed = static_cast<double>(kTried) / std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return "";
}

}  // namespace

Finding look_at_disk(const fs::path& folder) {
  constexpr double kSlow = 50e6;
  const fs::path place = there(folder);
  const std::string network = network_disk(place);
  const double free = free_bytes(place);
  Finding out{"disk", State::fine, format("{} free below {}{}", human_bytes(free), place, network.empty() ? "" : ", " + network)};
  if (free < 0.2 * kGigabyte) {
    out.state = State::bad;
    out.remedy = "checkpoints need room: free some, or write runs elsewhere (run.dir)";
    return out;
  }
  double speed = 0;
  if (const std::string fault = write_speed(place, speed); !fault.empty()) {
    out.state = State::bad;
    out.says += "; it cannot be written: " + fault;
    out.remedy = "runs are written into runs/ of the working folder: start where you may write, or set run.dir";
    return out;
  }
  out.says += format(", {} a second written", human_bytes(speed));
  if (free < 5 * kGigabyte) {
    out.state = State::poor;
    out.remedy = "each checkpoint of a job in fp32 with AdamW takes 12 bytes a parameter; checkpoint.keep_last_n says how many stay";
  } else if (speed < kSlow) {
    out.state = State::poor;
    out.remedy =
        "saves take long: keep checkpoint.async_mode, so that training goes on meanwhile, and save less often (checkpoint.interval)";
  }
  return out;
}

Finding look_at_temporary() {
  std::error_code failed;
  const fs::path folder = fs::temp_directory_path(failed);
  if (failed || ::access(folder.c_str(), W_OK | X_OK) != 0) {
    return {"temporary", State::poor, format("the folder for temporary files ({}) cannot be written", folder),
            "set TMPDIR to a folder that you may write: processes of one machine meet there"};
  }
  return {"temporary", State::fine, format("{} free below {}", human_bytes(free_bytes(folder)), folder)};
}

}  // namespace kf
