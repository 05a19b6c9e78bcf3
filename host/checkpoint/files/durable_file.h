#pragma once
// Writing a file piece by piece so that it is whole and durable, or absent; and the digest by which damage is found later.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/fs.h"

namespace kf {

/// Length and CRC-32 (zlib's polynomial) of a file.
struct FileDigest {
  std::uint64_t bytes = 0;
  std::uint32_t crc32 = 0;
  bool operator==(const FileDigest&) const = default;
};

/// Extends `crc` (0 at first) by `size` bytes.
std::uint32_t extend_crc32(std::uint32_t crc, const void* data, std::size_t size);
/// Reads the whole file; of one that has not the `expected` size, where that is given, only the size is told. Throws Code::checkpoint.
FileDigest digest_of(const fs::path& path, std::optional<std::uint64_t> expected = std::nullopt);
/// 8 lower-case hex digits, and back; the latter throws Code::checkpoint naming `path` for anything else.
std::string hex32(std::uint32_t value);
std::uint32_t crc32_from(const std::string& text, const fs::path& path);

/// A file under a temporary name until `commit`. Every failure throws Code::checkpoint with the system's reason; without a commit nothing
/// stays.
class DurableFile {
 public:
  explicit DurableFile(fs::path path);
  ~DurableFile();
  DurableFile(const DurableFile&) = delete;
  DurableFile& operator=(const DurableFile&) = delete;

  /// Gives the CRC-32 of these bytes alone.
  std::uint32_t write(const void* data, std::size_t size);
  void write(std::string_view text) { write(text.data(), text.size()); }
  /// fsync, rename to the final name (over an older file), fsync of the folder.
  FileDigest commit();

 private:
  [[noreturn]] void failed(const char* doing) const;

  fs::path path_;
  fs::path temporary_;
  int fd_ = -1;
  FileDigest digest_;
};

}  // namespace kf
