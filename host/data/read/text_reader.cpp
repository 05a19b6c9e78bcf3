// A text file is one document.

#include <algorithm>

#include "core/error.h"
#include "core/text.h"
#include "data/file/decompress.h"
#include "data/file/utf8.h"
#include "data/read/readers.h"

namespace kf {
namespace {

constexpr std::string_view kMark = "\xef\xbb\xbf";  // the byte order mark that some editors write: no part of the text

class TextReader final : public RowReader {
 public:
  TextReader(const SourceFile& file, const ReadOptions& options, Skipped& skipped)
      : RowReader(options, skipped),
        path_(file.path),
        most_(options.max_record_bytes),
        stream_(open_bytes(file.path, file.kind.compression)) {
    KF_CHECK(options.messages_field.empty() && options.text_template.empty() && options.completion_field.empty(), Code::config,
             "{} is plain text, which has no fields: data.{} is for records (JSON, CSV, Parquet, Arrow)", file.path,
             !options.messages_field.empty()  ? "messages_field"
             : !options.text_template.empty() ? "text_template"
                                              : "completion_field");
    KF_CHECK(!options.answers_only, Code::config, "data.loss_on = \"answers\" is about chats and completions, {} is plain text", file.path);
  }

  std::int64_t position() const override { return stream_->position(); }

 private:
  bool advance(Record& record) override {
    if (done_) {
      return false;
    }
    done_ = true;
    read_all();
    record.masked = false;
    record.counted.clear();
    record.written.clear();
    record.number = 1;
    record.text = text_;
    if (record.text.starts_with(kMark)) {
      record.text.remove_prefix(kMark.size());
    }
    if (!valid_utf8(record.text)) {
      const std::string_view before = record.text.substr(0, invalid_utf8_at(record.text));
      throw BrokenRecord(format("{}:{}: {}", path_, 1 + std::count(before.begin(), before.end(), '\n'), utf8_fault(record.text)));
    }
    return !record.text.empty();  // an empty file holds no document
  }

  void read_all() {
    std::size_t size = 0;
    for (;;) {
      if (text_.size() - size < kStep / 2) {
        text_.resize(std::max(text_.size() * 2, size + kStep));
      }
      const std::size_t got = stream_->read(text_.data() + size, text_.size() - size);
      size += got;
      KF_CHECK(size <= most_, Code::data,
               "{}: one document of more than {} bytes (data.max_record_bytes); split it, as into lines of a .jsonl file", path_, most_);
      if (got == 0) {
        break;
      }
    }
    text_.resize(size);
  }

  static constexpr std::size_t kStep = std::size_t{1} << 16;
  fs::path path_;
  std::size_t most_;
  std::unique_ptr<ByteStream> stream_;
  std::string text_;
  bool done_ = false;
};

}  // namespace

std::unique_ptr<RecordReader> open_text(const SourceFile& file, const ReadOptions& options, Skipped& skipped) {
  return std::make_unique<TextReader>(file, options, skipped);
}

}  // namespace kf
