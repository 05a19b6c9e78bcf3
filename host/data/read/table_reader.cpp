// Parquet and Arrow through the module beside the program. Finding it: see table_library.

#include <algorithm>

#include "core/error.h"
#include "core/text.h"
#include "data/file/input_file.h"
#include "data/file/lines.h"
#include "data/file/utf8.h"
#include "data/read/json_record.h"
#include "data/read/readers.h"
#include "data/read/table_library.h"
#include "data/tokenizer/json.h"

namespace kf {
namespace {

TableRequest request_for(const SourceFile& file, const FileSpan& part, const ReadOptions& options, const RecordText& text) {
  TableRequest request;
  request.path = file.path.string();
  request.parquet = file.kind.format == FileFormat::parquet;
  request.begin = part.begin;
  request.end = part.end;
  request.columns = text.fields();
  for (std::size_t i = 0; i < text.fields().size(); ++i) {
    request.described.push_back(text.describe(i));
    request.optional.push_back(text.optional(i));
  }
  request.strings_only = text.strings_only();
  request.chat = text.chat();
  request.json = text.nested() || std::find(request.optional.begin(), request.optional.end(), true) != request.optional.end();
  KF_CHECK(!options.text_field.empty() || text.chat(), Code::config, "{} is empty; name the column of {} that holds the text",
           options.text_field_key, file.path);
  return request;
}

class TableReader final : public RowReader {
 public:
  TableReader(const SourceFile& file, const FileSpan& part, const ReadOptions& options, Skipped& skipped)
      : RowReader(options, skipped), path_(file.path), text_(options), record_(options) {
    const InputFile readable(file.path);  // says best what is wrong with a file that is none
    KF_CHECK(readable.size() > 0, Code::data, "{} is empty (0 bytes): no {} file", path_, to_text(file.kind));
    std::string error;
    const TableRequest request = request_for(file, part, options, text_);
    json_ = request.json;
    rows_.reset(open_table_library()(request, error));
    KF_CHECK(rows_ != nullptr, Code::data, "{}: {}", path_, error);
  }

  std::int64_t position() const override { return rows_->position(); }

 private:
  bool advance(Record& record) override {
    switch (rows_->next()) {
      case TableRows::Step::end: return false;
      case TableRows::Step::row: break;
      case TableRows::Step::broken: throw BrokenRecord(format("{}: row {}: {}", path_, rows_->row(), rows_->error()));
      case TableRows::Step::failed:
        fail(Code::data, "{}{}: {}", path_, rows_->row() < 0 ? std::string() : format(": after row {}", rows_->row()), rows_->error());
    }
    record.number = rows_->row();
    for (const std::string_view value : rows_->values()) {
      check(value);
    }
    if (json_) {
      read_json(record);
    } else {
      text_.from_fields(rows_->values(), record);
    }
    return true;
  }

  /// As a line of a JSONL file with the same content.
  void read_json(Record& record) {
    object_ = "{";
    for (std::size_t i = 0; i < rows_->values().size(); ++i) {
      object_ += i == 0 ? "" : ",";
      object_ += json::quote(rows_->names()[i]);
      object_ += ':';
      object_ += rows_->values()[i];
    }
    object_ += '}';
    const std::size_t size = object_.size();
    object_.append(Lines::kPadding, ' ');
    record_.release();
    record_.read(std::string_view(object_).substr(0, size), record, [&] { return format("{}: row {}", path_, rows_->row()); });
  }

  void check(std::string_view text) const {
    if (!valid_utf8(text)) [[unlikely]] {
      check_utf8(text, format("{}: row {}", path_, rows_->row()));
    }
  }

  fs::path path_;
  RecordText text_;
  JsonRecord record_;
  std::string object_;
  bool json_ = false;
  std::unique_ptr<TableRows> rows_;
};

}  // namespace

std::unique_ptr<RecordReader> open_table(const SourceFile& file, const FileSpan& part, const ReadOptions& options, Skipped& skipped) {
  return std::make_unique<TableReader>(file, part, options, skipped);
}

}  // namespace kf
