// .json files: a list of records, one record, or records in a row.

#include "core/text.h"
#include "data/file/decompress.h"
#include "data/read/json_record.h"
#include "data/read/json_splitter.h"
#include "data/read/readers.h"

namespace kf {
namespace {

class JsonReader final : public RowReader {
 public:
  JsonReader(const SourceFile& file, const ReadOptions& options, Skipped& skipped)
      : RowReader(options, skipped),
        path_(file.path),
        values_(open_bytes(file.path, file.kind.compression), file.path, options.max_record_bytes),
        record_(options) {}

  std::int64_t position() const override { return values_.position(); }

 private:
  bool advance(Record& record) override {
    record_.release();
    const std::optional<std::string_view> value = values_.next();
    if (!value) {
      return false;
    }
    record.number = values_.line();
    record_.read(*value, record, [&] { return format("{}:{} (record {})", path_, values_.line(), values_.number()); });
    return true;
  }

  fs::path path_;
  JsonSplitter values_;
  JsonRecord record_;
};

}  // namespace

std::unique_ptr<RecordReader> open_json(const SourceFile& file, const ReadOptions& options, Skipped& skipped) {
  return std::make_unique<JsonReader>(file, options, skipped);
}

}  // namespace kf
