// .csv and .tsv files: the first row names the fields.

#include <algorithm>

#include "core/error.h"
#include "core/text.h"
#include "data/file/decompress.h"
#include "data/read/csv_rows.h"
#include "data/read/readers.h"

namespace kf {
namespace {

class CsvReader final : public RowReader {
 public:
  CsvReader(const SourceFile& file, const ReadOptions& options, Skipped& skipped)
      : RowReader(options, skipped),
        path_(file.path),
        rows_(open_bytes(file.path, file.kind.compression), file.path, file.kind.format == FileFormat::tsv ? '\t' : ',',
              options.max_record_bytes),
        text_(options) {
    KF_CHECK(!text_.chat(), Code::config, "{}: a table of plain fields holds no chats ({}); use JSON lines or Parquet", path_,
             text_.describe(0));
    read_header();
  }

  std::int64_t position() const override { return rows_.position(); }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  void read_header() {
    if (!rows_.next()) {
      return;  // an empty file: no record
    }
    columns_ = rows_.size();
    std::vector<std::string> names;
    for (std::size_t i = 0; i < columns_; ++i) {
      names.emplace_back(rows_.field(i));
    }
    for (std::size_t i = 0; i < text_.fields().size(); ++i) {
      const auto at = std::find(names.begin(), names.end(), text_.fields()[i]);
      if (at == names.end() && text_.optional(i)) {
        wanted_.push_back(kNone);
        continue;
      }
      KF_CHECK(at != names.end(), Code::data, "{}: no {}; the first row has the columns {}", path_, text_.describe(i), join(names, ", "));
      KF_CHECK(std::count(names.begin(), names.end(), *at) == 1, Code::data, "{}: several columns are called {}", path_, kf::quoted(*at));
      wanted_.push_back(static_cast<std::size_t>(at - names.begin()));
    }
    values_.resize(wanted_.size());
  }

  bool advance(Record& record) override {
    if (columns_ == 0 || !rows_.next()) {
      return false;
    }
    if (rows_.size() != columns_) {
      throw BrokenRecord(format("{}:{}: a row of {} fields, the first row has {}", path_, rows_.line(), rows_.size(), columns_));
    }
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
      values_[i] = wanted_[i] == kNone ? std::string_view() : rows_.field(wanted_[i]);
      if (!is_utf8(values_[i])) {
        throw BrokenRecord(format("{}:{}: the {} is not valid UTF-8", path_, rows_.line(), text_.describe(i)));
      }
    }
    record.number = rows_.line();
    text_.from_fields(values_, record);
    return true;
  }

  fs::path path_;
  CsvRows rows_;
  RecordText text_;
  std::size_t columns_ = 0;
  std::vector<std::size_t> wanted_;  // the column of each field
  std::vector<std::string_view> values_;
};

}  // namespace

std::unique_ptr<RecordReader> open_csv(const SourceFile& file, const ReadOptions& options, Skipped& skipped) {
  return std::make_unique<CsvReader>(file, options, skipped);
}

}  // namespace kf
