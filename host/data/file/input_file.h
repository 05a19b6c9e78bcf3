#pragma once
// Bytes of a file, read and never mapped: a file that shrinks or vanishes while it is read is an error message, not a signal.

#include <cstdint>
#include <memory>

#include "core/fs.h"

namespace kf {

/// Bytes in order. One thread uses it.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  /// Up to `size` bytes, fewer only where no more are at hand; 0 at the end. Throws Code::data.
  virtual std::size_t read(char* to, std::size_t size) = 0;
  /// Bytes of the file that have been taken, compressed where it is.
  virtual std::int64_t position() const = 0;
};

/// An open regular file. It ends where it ended when it was opened, whatever is appended later.
class InputFile {
 public:
  /// Throws Code::data when it cannot be opened or is no regular file (a folder, a pipe, a device).
  explicit InputFile(const fs::path& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  std::int64_t size() const { return size_; }
  const fs::path& path() const { return path_; }
  /// Fills as much of [to, to + size) as the file has from `offset` on. Throws Code::data when the file has become shorter.
  std::size_t read_at(std::int64_t offset, char* to, std::size_t size) const;

 private:
  fs::path path_;
  int fd_ = -1;
  std::int64_t size_ = 0;
};

/// The plain bytes of [begin, end) of a file.
class FileStream final : public ByteStream {
 public:
  explicit FileStream(const fs::path& path, std::int64_t begin = 0);
  std::size_t read(char* to, std::size_t size) override;
  std::int64_t position() const override { return at_ - begin_; }
  const InputFile& file() const { return file_; }

 private:
  InputFile file_;
  std::int64_t begin_;
  std::int64_t at_;
};

}  // namespace kf
