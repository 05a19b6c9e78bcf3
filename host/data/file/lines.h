#pragma once
// A stream cut into lines. Memory holds one line and a buffer, whatever the file's size.

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "data/file/input_file.h"

namespace kf {

class Lines {
 public:
  /// Readable bytes behind every line that `next` gives: what simdjson wants.
  static constexpr std::size_t kPadding = 64;

  /// `name` and `longest` (bytes) are for the message about a line that is longer.
  Lines(std::unique_ptr<ByteStream> stream, fs::path name, std::size_t longest);

  /// The next line without its '\n' (a '\r' stays), valid until the next call; nothing at the end.
  std::optional<std::string_view> next();
  /// Passes over the rest of a line without keeping it, as far as byte `limit` of the stream: a line may be as long as the file.
  void skip(std::int64_t limit);
  std::int64_t number() const { return number_; }      // of the line last given, from 1
  std::int64_t next_start() const { return offset_; }  // of the line that follows
  std::int64_t position() const { return stream_->position(); }

 private:
  bool refill();

  std::unique_ptr<ByteStream> stream_;
  fs::path name_;
  std::size_t longest_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;    // of what has not been given out,
  std::size_t end_ = 0;      // and its end
  std::size_t scanned_ = 0;  // no '\n' before it
  std::int64_t number_ = 0;
  std::int64_t offset_ = 0;
  bool ended_ = false;
};

}  // namespace kf
