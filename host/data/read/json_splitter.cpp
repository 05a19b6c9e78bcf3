#include "data/read/json_splitter.h"

#include "core/error.h"
#include "core/text.h"
#include "data/file/lines.h"

namespace kf {
namespace {

constexpr std::size_t kBuffer = std::size_t{1} << 18;
constexpr std::size_t kLarge = std::size_t{1} << 24;  // room that is not kept from one value to the next

bool is_space(int c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

}  // namespace

JsonSplitter::JsonSplitter(std::unique_ptr<ByteStream> stream, fs::path name, std::size_t longest)
    : stream_(std::move(stream)), name_(std::move(name)), longest_(longest), buffer_(kBuffer) {
  while (end_ < 3 && more()) {
  }
  if (std::string_view(buffer_.data(), end_).starts_with("\xef\xbb\xbf")) {
    at_ = 3;
  }
  skip_space();
  if (peek() == '[') {
    list_ = true;
    take();
  }
}

std::optional<std::string_view> JsonSplitter::next() {
  skip_space();
  if (list_ && !closed_) {
    if (peek() == ']') {
      take();
      closed_ = true;
      skip_space();
    } else if (count_ > 0) {
      if (peek() != ',') {
        unexpected("a comma or the list's end");
      }
      take();
      skip_space();
    }
  }
  if (peek() < 0) {
    if (list_ && !closed_) {
      unexpected("the list's end");
    }
    return std::nullopt;
  }
  if (closed_) {
    unexpected("nothing behind the list");
  }
  if (value_.capacity() > kLarge) {
    value_ = {};
  }
  value_.clear();
  value_line_ = line_;
  ++count_;
  scan_value();
  const std::size_t size = value_.size();
  value_.append(Lines::kPadding, ' ');
  return std::string_view(value_).substr(0, size);
}

/// Up to where the value must end: its brackets close, or a comma, bracket or space follows. Whether it is JSON is another's matter.
void JsonSplitter::scan_value() {
  std::int64_t depth = 0;
  for (;;) {
    const int c = peek();
    if (c < 0 && depth > 0) {
      unexpected("more of the value");
    }
    if (c < 0 || (depth == 0 && !value_.empty() && (c == ',' || c == ']' || c == '}' || is_space(c)))) {
      return;
    }
    if (c == '"') {
      scan_string();
    } else {
      depth += c == '{' || c == '[' ? 1 : c == '}' || c == ']' ? -1 : 0;
      value_ += static_cast<char>(c);
      take();
    }
    if (depth < 0) {
      unexpected("a value");
    }
    if (depth == 0 && (c == '"' || c == '}' || c == ']')) {
      return;
    }
    KF_CHECK(value_.size() <= longest_, Code::data, "{}:{}: a record of more than {} bytes (data.max_record_bytes)", name_, value_line_,
             longest_);
  }
}

/// Line breaks inside strings are no JSON, but the parser of records says so better.
void JsonSplitter::scan_string() {
  const std::int64_t line = line_;
  bool escaped = true;  // the quote that opens it
  for (int c = peek(); c >= 0; c = peek()) {
    value_ += static_cast<char>(c);
    take();
    if (c == '"' && !escaped) {
      return;
    }
    escaped = c == '\\' && !escaped;
    KF_CHECK(value_.size() <= longest_, Code::data, "{}:{}: a string that never ends: more than {} bytes (data.max_record_bytes)", name_,
             line, longest_);
  }
  unexpected("the end of the string of line " + std::to_string(line));
}

void JsonSplitter::skip_space() {
  while (is_space(peek())) {
    take();
  }
}

bool JsonSplitter::more() {
  if (at_ == end_) {
    at_ = end_ = 0;
  }
  if (end_ == buffer_.size()) {
    return false;
  }
  const std::size_t got = stream_->read(buffer_.data() + end_, buffer_.size() - end_);
  end_ += got;
  return got > 0;
}

int JsonSplitter::peek() {
  if (at_ == end_ && !more()) {
    return -1;
  }
  return static_cast<unsigned char>(buffer_[at_]);
}

void JsonSplitter::take() { line_ += buffer_[at_++] == '\n' ? 1 : 0; }

void JsonSplitter::unexpected(const std::string& wanted) {
  const int c = peek();
  fail(Code::data, "{}:{}: not valid JSON: expected {}, found {}", name_, line_, wanted,
       c < 0 ? std::string("the end of the file: it ends early") : "'" + std::string(1, static_cast<char>(c)) + "'");
}

}  // namespace kf
