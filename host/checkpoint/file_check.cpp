#include "checkpoint/file_check.h"

#include <algorithm>
#include <vector>

#include "checkpoint/together.h"
#include "core/error.h"
#include "core/plain_file.h"

namespace kf {
namespace {

using Files = std::map<std::string, FileDigest>;

/// The files of a rank: the longest-processing-time rule (Graham 1969).
Files share_of(const Files& files, const Group& group) {
  std::vector<Files::const_iterator> order;
  for (auto file = files.begin(); file != files.end(); ++file) {
    order.push_back(file);
  }
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a->second.bytes > b->second.bytes; });
  std::vector<std::uint64_t> load(static_cast<std::size_t>(group.size()), 0);
  Files mine;
  for (const auto& file : order) {
    const auto reader = std::min_element(load.begin(), load.end());
    *reader += file->second.bytes;
    if (reader - load.begin() == group.rank()) {
      mine.insert(*file);
    }
  }
  return mine;
}

}  // namespace

void check_here(const fs::path& checkpoint, const Files& files) {
  for (const auto& [name, expected] : files) {
    const fs::path path = checkpoint / name;
    const FileDigest found = digest_of(path, expected.bytes);
    KF_CHECK(found.bytes == expected.bytes, Code::checkpoint, "{} has {} bytes instead of {}", path, found.bytes, expected.bytes);
    KF_CHECK(found == expected, Code::checkpoint, "{} is damaged: its checksum does not match", path);
  }
}

void check_sizes(const fs::path& checkpoint, const Files& files) {
  for (const auto& [name, expected] : files) {
    const std::string fault = unlike_a_file(checkpoint / name);
    KF_CHECK(fault.empty(), Code::checkpoint, "cannot read {}: {}", checkpoint / name, fault);
    const std::uintmax_t size = fs::file_size(checkpoint / name);
    KF_CHECK(size == expected.bytes, Code::checkpoint, "{} has {} bytes instead of {}", checkpoint / name, size, expected.bytes);
  }
}

FileCheck shared_check(Group& files) {
  return [&files](const fs::path& checkpoint, const Files& all) {
    together(files, [&] {
      check_here(checkpoint, share_of(all, files));
      return std::string();
    });
  };
}

}  // namespace kf
