#include "core/output_file.h"

#include <cerrno>
#include <fstream>
#include <system_error>

#include "core/error.h"

namespace kf {
namespace {

/// Where links from `path` on lead to, also where nothing is there yet.
fs::path behind_links(fs::path path) {
  constexpr int kMostLinks = 40;  // as the kernel
  std::error_code error;
  for (int links = 0; links < kMostLinks && fs::is_symlink(fs::symlink_status(path, error)); ++links) {
    const fs::path next = fs::read_symlink(path, error);
    KF_CHECK(!error, Code::other, "cannot read the link {}: {}", path, error.message());
    path = path.parent_path() / next;
  }
  return path;
}

void write_into(const fs::path& path, std::string_view content) {
  errno = 0;
  std::ofstream out(path, std::ios::binary);
  out << content << std::flush;
  KF_CHECK(out.good(), Code::other, "cannot write {}: {}", path, std::generic_category().message(errno));
}

}  // namespace

void write_output(const fs::path& path, std::string_view content) {
  std::error_code error;
  const fs::file_status there = fs::status(path, error);
  if (fs::exists(there) && !fs::is_regular_file(there)) {
    write_into(path, content);
  } else {
    write_file_atomic(behind_links(path), content);
  }
}

}  // namespace kf
