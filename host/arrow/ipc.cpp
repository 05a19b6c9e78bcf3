// Arrow's own files: with a footer (.arrow, .feather), or as a stream, as `datasets` saves them.

#include <arrow/io/file.h>
#include <arrow/ipc/options.h>
#include <arrow/ipc/reader.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "arrow/batches.h"
#include "core/text.h"

namespace kf::table {
namespace {

arrow::ipc::IpcReadOptions options_for(const arrow::Schema& schema, const TableRequest& request) {
  arrow::ipc::IpcReadOptions options = arrow::ipc::IpcReadOptions::Defaults();
  options.use_threads = false;
  for (const std::string& column : columns_of(schema, request)) {
    options.included_fields.push_back(schema.GetFieldIndex(column));
  }
  std::sort(options.included_fields.begin(), options.included_fields.end());
  return options;
}

/// Offsets and sizes inside a batch come from the file: they are checked before anything is read by them.
std::shared_ptr<arrow::RecordBatch> checked(std::shared_ptr<arrow::RecordBatch> batch) {
  if (batch) {
    check(batch->ValidateFull());
  }
  return batch;
}

std::shared_ptr<arrow::io::ReadableFile> open(const std::string& path) { return value_of(arrow::io::ReadableFile::Open(path)); }

class FileBatches final : public Batches {
 public:
  explicit FileBatches(const TableRequest& request) : file_(open(request.path)) {
    schema_ = value_of(arrow::ipc::RecordBatchFileReader::Open(file_))->schema();
    reader_ = value_of(arrow::ipc::RecordBatchFileReader::Open(file_, options_for(*schema_, request)));
  }
  std::shared_ptr<arrow::RecordBatch> next() override {
    return at_ < reader_->num_record_batches() ? checked(value_of(reader_->ReadRecordBatch(at_++))) : nullptr;
  }
  std::shared_ptr<arrow::Schema> schema() const override { return schema_; }
  std::int64_t first_row() const override { return 0; }
  std::int64_t position() const override {
    const std::int64_t size = file_->GetSize().ValueOr(0);
    return reader_->num_record_batches() == 0 ? size : size / reader_->num_record_batches() * at_;
  }

 private:
  std::shared_ptr<arrow::io::ReadableFile> file_;
  std::shared_ptr<arrow::Schema> schema_;
  std::shared_ptr<arrow::ipc::RecordBatchFileReader> reader_;
  int at_ = 0;
};

class StreamBatches final : public Batches {
 public:
  explicit StreamBatches(const TableRequest& request) : file_(open(request.path)) {
    schema_ = value_of(arrow::ipc::RecordBatchStreamReader::Open(file_))->schema();
    check(file_->Seek(0));
    reader_ = value_of(arrow::ipc::RecordBatchStreamReader::Open(file_, options_for(*schema_, request)));
  }
  std::shared_ptr<arrow::RecordBatch> next() override {
    std::shared_ptr<arrow::RecordBatch> batch;
    check(reader_->ReadNext(&batch));
    if (!batch) {
      check_end();
    }
    return checked(batch);
  }
  std::shared_ptr<arrow::Schema> schema() const override { return schema_; }
  std::int64_t first_row() const override { return 0; }
  std::int64_t position() const override { return file_->Tell().ValueOr(0); }

 private:
  /// Arrow takes the end of a file for the end of the stream; a file cut between two batches would pass for a whole one. Writers end a
  /// stream with a mark: a continuation and the length 0.
  void check_end() {
    const std::int64_t size = value_of(file_->GetSize());
    std::array<char, 8> last{};
    if (size >= 8) {
      value_of(file_->ReadAt(size - 8, 8, last.data()));
    }
    constexpr std::array<char, 8> mark{'\xff', '\xff', '\xff', '\xff', 0, 0, 0, 0};
    if (last != mark) {
      throw Problem(format("the Arrow stream ends early, at byte {}: the mark of its end is missing; the file was cut off", size));
    }
  }

  std::shared_ptr<arrow::io::ReadableFile> file_;
  std::shared_ptr<arrow::Schema> schema_;
  std::shared_ptr<arrow::ipc::RecordBatchStreamReader> reader_;
};

bool has_footer(const std::string& path) {
  std::array<char, 6> start{};
  const std::int64_t got = value_of(open(path)->ReadAt(0, 6, start.data()));
  return got == 6 && std::memcmp(start.data(), "ARROW1", 6) == 0;
}

}  // namespace

std::unique_ptr<Batches> open_ipc(const TableRequest& request) {
  if (has_footer(request.path)) {
    return std::make_unique<FileBatches>(request);
  }
  return std::make_unique<StreamBatches>(request);
}

}  // namespace kf::table
