#pragma once
// Files: whole reads, durable writes, memory maps, globs.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

namespace fs = std::filesystem;

/// The whole file. Throws Code::other naming the path and the system's reason.
std::string read_file(const fs::path& path);

/// Writes `content` so that a reader sees the old file or the new one, never half: temporary name, fsync, rename, fsync of the folder.
void write_file_atomic(const fs::path& path, std::string_view content);

/// fsync of a file or folder that others wrote.
void sync_path(const fs::path& path);

/// A file mapped read-only. Bytes past the end are never visible.
class MappedFile {
 public:
  /// Throws Code::data when the file cannot be opened or mapped. An empty file gives an empty span.
  explicit MappedFile(const fs::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const fs::path& path() const { return path_; }

 private:
  void release() noexcept;

  fs::path path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Files below `folder` whose path relative to it matches `pattern`, sorted bytewise, each real file once (symbolic links are followed).
/// `*` and `?` stay inside one path part, `**` crosses parts, `{a,b}` and `[0-9]` as in a shell. Hidden parts need an explicit dot.
std::vector<fs::path> glob(const fs::path& folder, std::string_view pattern);

}  // namespace kf
