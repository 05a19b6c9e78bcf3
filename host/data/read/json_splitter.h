#pragma once
// Values one after the other, or the elements of one list, cut out of a stream of JSON without holding more than one of them.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/file/input_file.h"

namespace kf {

class JsonSplitter {
 public:
  /// `name` and `longest` (bytes) are for messages.
  JsonSplitter(std::unique_ptr<ByteStream> stream, fs::path name, std::size_t longest);

  /// The text of the next value, with Lines::kPadding readable bytes behind it; nothing at the end. Throws Code::data where commas or
  /// brackets do not fit: what follows such a place cannot be trusted.
  std::optional<std::string_view> next();
  std::int64_t line() const { return value_line_; }  // on which the value starts, from 1
  std::int64_t number() const { return count_; }     // of values so far
  std::int64_t position() const { return stream_->position(); }

 private:
  bool more();
  int peek();
  void take();
  void skip_space();
  void scan_value();
  void scan_string();
  [[noreturn]] void unexpected(const std::string& wanted);

  std::unique_ptr<ByteStream> stream_;
  fs::path name_;
  std::size_t longest_;
  std::vector<char> buffer_;
  std::size_t at_ = 0;
  std::size_t end_ = 0;
  std::string value_;
  std::int64_t line_ = 1;
  std::int64_t value_line_ = 1;
  std::int64_t count_ = 0;
  bool list_ = false;  // elements of a list, not values in a row
  bool closed_ = false;
};

}  // namespace kf
