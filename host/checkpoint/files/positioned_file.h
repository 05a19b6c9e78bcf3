#pragma once
// Parts of a file, read where they stand. Not mapped: pages of a map count as the process' memory, and an error of the disk would end it.

#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/descriptor.h"
#include "core/fs.h"

namespace kf {

/// A file that stays what it was when it was opened. Nothing is held open: a checkpoint of many ranks has more files than a process may.
class PositionedFile {
 public:
  /// Throws Code::checkpoint where it is no ordinary file that can be read.
  explicit PositionedFile(fs::path path);

  const fs::path& path() const { return path_; }
  std::uint64_t size() const { return size_; }
  /// Exactly these bytes. Throws Code::checkpoint where they end early, cannot be read, or are another file's by now.
  void read(std::uint64_t offset, void* to, std::size_t size) const;

 private:
  struct Found {
    std::uint64_t device = 0, inode = 0, size = 0;
    bool operator==(const Found&) const = default;
  };
  Descriptor open(Found& found) const;

  fs::path path_;
  Found found_;
  std::uint64_t size_ = 0;
};

}  // namespace kf
