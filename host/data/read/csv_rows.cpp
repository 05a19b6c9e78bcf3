#include "data/read/csv_rows.h"

#include <algorithm>

#include "core/error.h"

namespace kf {
namespace {

constexpr std::size_t kBuffer = std::size_t{1} << 18;

}  // namespace

CsvRows::CsvRows(std::unique_ptr<ByteStream> stream, fs::path name, char separator, std::size_t longest)
    : stream_(std::move(stream)), name_(std::move(name)), separator_(separator), longest_(longest), buffer_(kBuffer) {}

std::string_view CsvRows::field(std::size_t index) const {
  const std::size_t begin = index == 0 ? 0 : ends_[index - 1];
  return std::string_view(text_).substr(begin, ends_[index] - begin);
}

bool CsvRows::next() {
  text_.clear();
  ends_.clear();
  if (!started_) {
    started_ = true;
    peek();
    if (std::string_view(buffer_.data(), end_).starts_with("\xef\xbb\xbf")) {
      at_ = 3;
    }
  }
  while (peek() == '\n' || peek() == '\r') {
    line_ += peek() == '\n' ? 1 : 0;
    take();
  }
  if (peek() < 0) {
    return false;
  }
  row_line_ = line_;
  do {
    if (peek() == '"') {
      quoted_field();
    } else {
      plain_field();
    }
    end_field();
  } while (!end_of_row());
  return true;
}

/// Behind a field: a separator (another one follows), or the row's end.
bool CsvRows::end_of_row() {
  const int c = peek();
  if (c == static_cast<unsigned char>(separator_)) {
    take();
    return false;
  }
  if (c == '\r') {
    take();
  }
  if (peek() == '\n') {
    take();
    ++line_;
  }
  return true;
}

/// A run of ordinary characters at a time. A quote inside stands for itself.
void CsvRows::plain_field() {
  const auto ends = [this](char c) { return c == separator_ || c == '\n' || c == '\r'; };
  while (peek() >= 0) {
    const auto from = buffer_.begin() + static_cast<std::ptrdiff_t>(at_);
    const auto to = std::find_if(from, buffer_.begin() + static_cast<std::ptrdiff_t>(end_), ends);
    text_.append(from, to);
    at_ += static_cast<std::size_t>(to - from);
    check_size();
    if (at_ < end_) {
      return;
    }
  }
}

void CsvRows::quoted_field() {
  const std::int64_t line = line_;
  take();
  for (;;) {
    KF_CHECK(peek() >= 0, Code::data, "{}:{}: a quoted field is never closed: the file ends early, or a quote is missing", name_, line);
    const auto from = buffer_.begin() + static_cast<std::ptrdiff_t>(at_);
    const auto to = std::find(from, buffer_.begin() + static_cast<std::ptrdiff_t>(end_), '"');
    line_ += std::count(from, to, '\n');
    text_.append(from, to);
    at_ += static_cast<std::size_t>(to - from);
    check_size();
    if (at_ == end_) {
      continue;
    }
    take();
    if (peek() != '"') {
      break;
    }
    text_ += '"';
    take();
  }
  const int c = peek();
  KF_CHECK(c < 0 || c == static_cast<unsigned char>(separator_) || c == '\n' || c == '\r', Code::data,
           "{}:{}: '{}' behind the closing quote of a field; quotes inside are doubled", name_, line_, static_cast<char>(c));
}

void CsvRows::check_size() const {
  KF_CHECK(text_.size() <= longest_, Code::data, "{}:{}: a row of more than {} bytes (data.max_record_bytes); is a quote missing?", name_,
           row_line_, longest_);
}

int CsvRows::peek() {
  if (at_ == end_) {
    at_ = 0;
    end_ = stream_->read(buffer_.data(), buffer_.size());
    if (end_ == 0) {
      return -1;
    }
  }
  return static_cast<unsigned char>(buffer_[at_]);
}

}  // namespace kf
