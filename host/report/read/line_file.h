#pragma once
// A file of lines that somebody else appends to: what has come since the last look.

#include <cstdint>
#include <string>
#include <string_view>

#include "core/descriptor.h"
#include "core/fs.h"

namespace kf::report {

enum class News {
  nothing,
  more,   // lines behind those that were read
  again,  // it is another file, or was written anew, as by a run that goes on from an earlier step: all of it is to be read again
};

/// Only whole lines are read: the last one is left until its newline is there.
class LineFile {
 public:
  /// How many bytes may be read behind what `next` gives, whatever they are (a parser's padding).
  static constexpr std::size_t kPadding = 64;

  /// The file need not be there yet.
  explicit LineFile(fs::path path) : path_(std::move(path)) {}

  const fs::path& path() const { return path_; }
  /// Looks at the file. Throws Code::other where it is there and cannot be read. A file that has gone is `nothing`: what was read stays.
  News look();
  /// The next whole lines, each with its newline, as far as they were there at the last look; "" when all are read. Valid until the next
  /// call. Throws Code::other for a line of more than 64 MiB.
  std::string_view next();
  /// Bytes read so far, all of whole lines.
  std::uint64_t offset() const { return offset_; }

 private:
  bool same_file() const;
  void start_over();

  fs::path path_;
  Descriptor file_;
  std::uint64_t device_ = 0, inode_ = 0;
  std::uint64_t offset_ = 0;
  std::uint64_t end_ = 0;  // of the file, at the last look
  std::string before_;     // the bytes before offset_: an inode may be another file's by now
  std::string buffer_;
};

}  // namespace kf::report
