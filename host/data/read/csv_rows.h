#pragma once
// Rows of comma-separated values as RFC 4180 has them, from a stream.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/file/input_file.h"

namespace kf {

class CsvRows {
 public:
  CsvRows(std::unique_ptr<ByteStream> stream, fs::path name, char separator, std::size_t longest);

  /// The next row; false at the end. Empty lines are passed over. Quoted fields may hold separators, line breaks and doubled quotes. Throws
  /// Code::data for a quoted field that is never closed or has text behind its closing quote.
  bool next();
  std::size_t size() const { return ends_.size(); }
  std::string_view field(std::size_t index) const;  // of the row, until the next call
  std::int64_t line() const { return row_line_; }   // on which the row starts, from 1
  std::int64_t position() const { return stream_->position(); }

 private:
  int peek();
  void take() { ++at_; }
  void end_field() { ends_.push_back(text_.size()); }
  void plain_field();
  void quoted_field();
  bool end_of_row();
  void check_size() const;

  std::unique_ptr<ByteStream> stream_;
  fs::path name_;
  char separator_;
  std::size_t longest_;
  std::vector<char> buffer_;
  std::size_t at_ = 0;
  std::size_t end_ = 0;
  std::string text_;               // all fields of the row
  std::vector<std::size_t> ends_;  // of each, in text_
  std::int64_t line_ = 1;
  std::int64_t row_line_ = 1;
  bool started_ = false;
};

}  // namespace kf
