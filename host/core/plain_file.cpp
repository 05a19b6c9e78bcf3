#include "core/plain_file.h"

#include <sys/types.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <system_error>

#include "core/error.h"

namespace kf {

std::string unlike_a_file(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  switch (status.type()) {
    case fs::file_type::regular: return {};
    case fs::file_type::directory: return "it is a folder";
    case fs::file_type::character:
    case fs::file_type::block: return "it is a device, not a regular file";
    case fs::file_type::fifo: return "it is a pipe, not a regular file";
    case fs::file_type::socket: return "it is a socket, not a regular file";
    case fs::file_type::not_found: {
      std::error_code ignored;
      return fs::is_symlink(path, ignored) ? "it is a link to nothing" : "No such file or directory";
    }
    default: return error == std::errc::too_many_symbolic_link_levels ? "it is a link that leads back to itself" : error.message();
  }
}

std::string read_regular_file(const fs::path& path, std::uint64_t most) {
  const std::string fault = unlike_a_file(path);
  KF_CHECK(fault.empty(), Code::other, "cannot read {}: {}", path, fault);
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  KF_CHECK(!error, Code::other, "cannot read {}: {}", path, error.message());
  KF_CHECK(size <= most, Code::other, "cannot read {}: it has {} bytes, more than such a file can have", path, size);
  return read_file(path);
}

bool path_exists(const fs::path& path) {
  std::error_code error;
  return fs::exists(fs::status(path, error)) && !error;
}

bool is_gone(std::string_view number) {
  pid_t process = 0;
  const auto [rest, fault] = std::from_chars(number.data(), number.data() + number.size(), process);
  return fault == std::errc() && rest == number.data() + number.size() && process > 0 && ::kill(process, 0) != 0 && errno == ESRCH;
}

void remove_temporaries(const fs::path& folder, const std::vector<std::string>& names) {
  std::error_code error;
  std::vector<fs::path> found;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    const std::size_t mark = name.rfind(".tmp");
    if (mark == std::string::npos || std::find(names.begin(), names.end(), name.substr(0, mark)) == names.end()) {
      continue;
    }
    if (is_gone(std::string_view(name).substr(mark + 4))) {
      found.push_back(it->path());
    }
  }
  for (const fs::path& path : found) {
    fs::remove(path, error);  // what cannot be removed disturbs nobody
  }
}

fs::path free_name(const fs::path& taken) {
  for (int number = 1;; ++number) {
    fs::path name = taken.string() + "." + std::to_string(number);
    if (!fs::exists(fs::symlink_status(name))) {
      return name;
    }
  }
}

}  // namespace kf
