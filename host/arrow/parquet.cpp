#include <arrow/io/file.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>

#include <algorithm>

#include "arrow/batches.h"
#include "core/text.h"

namespace kf::table {
namespace {

constexpr std::int64_t kRows = 512;           // in a batch: long documents make megabytes of these
constexpr std::int64_t kReadAhead = 1 << 20;  // bytes of a column; without it a row group's whole column would be held

parquet::ReaderProperties reader_properties() {
  parquet::ReaderProperties properties;
  properties.enable_buffered_stream();
  properties.set_buffer_size(kReadAhead);
  properties.set_page_checksum_verification(true);
  return properties;
}

/// Where a row group begins: its first column's first page.
std::int64_t start_of(const parquet::RowGroupMetaData& group) {
  if (group.num_columns() == 0) {
    return 0;
  }
  const auto column = group.ColumnChunk(0);
  const std::int64_t data = column->data_page_offset();
  const std::int64_t dictionary = column->has_dictionary_page() ? column->dictionary_page_offset() : 0;
  return std::max<std::int64_t>(0, dictionary > 0 ? std::min(dictionary, data) : data);
}

void add_leaves(const parquet::arrow::SchemaField& field, std::vector<int>& leaves) {
  if (field.is_leaf()) {
    leaves.push_back(field.column_index);
  }
  for (const parquet::arrow::SchemaField& child : field.children) {
    add_leaves(child, leaves);
  }
}

class ParquetBatches final : public Batches {
 public:
  explicit ParquetBatches(const TableRequest& request) {
    auto file = value_of(arrow::io::ReadableFile::Open(request.path));
    parquet::ArrowReaderProperties properties(/*use_threads=*/false);
    properties.set_batch_size(kRows);
    properties.set_pre_buffer(false);
    parquet::arrow::FileReaderBuilder builder;
    check(builder.Open(std::move(file), reader_properties()));
    builder.properties(properties);
    check(builder.Build(&reader_));
    check(reader_->GetSchema(&schema_));
    const std::vector<std::string> columns = columns_of(*schema_, request);
    choose_groups(request);
    batches_ = value_of(reader_->GetRecordBatchReader(groups_, leaves_of(columns)));
  }

  std::shared_ptr<arrow::RecordBatch> next() override {
    std::shared_ptr<arrow::RecordBatch> batch;
    check(batches_->ReadNext(&batch));
    rows_ += batch ? batch->num_rows() : 0;
    // The footer says how many rows there are; a file that gives fewer is broken.
    if (!batch && rows_ != all_rows_) {
      throw Problem(format("the row groups hold {} rows, the footer says {}", rows_, all_rows_));
    }
    return batch;
  }
  std::shared_ptr<arrow::Schema> schema() const override { return schema_; }
  std::int64_t first_row() const override { return first_row_; }
  std::int64_t position() const override {
    return all_rows_ == 0
               ? bytes_
               : static_cast<std::int64_t>(static_cast<double>(bytes_) * static_cast<double>(rows_) / static_cast<double>(all_rows_));
  }

 private:
  void choose_groups(const TableRequest& request) {
    const auto metadata = reader_->parquet_reader()->metadata();
    for (int i = 0; i < metadata->num_row_groups(); ++i) {
      const auto group = metadata->RowGroup(i);
      const std::int64_t start = start_of(*group);
      if (start < request.begin) {
        first_row_ += group->num_rows();
      } else if (start < request.end) {
        groups_.push_back(i);
        all_rows_ += group->num_rows();
        bytes_ += group->total_compressed_size() > 0 ? group->total_compressed_size() : group->total_byte_size();
      }
    }
  }

  std::vector<int> leaves_of(const std::vector<std::string>& columns) const {
    std::vector<int> leaves;
    for (const parquet::arrow::SchemaField& field : reader_->manifest().schema_fields) {
      if (std::find(columns.begin(), columns.end(), field.field->name()) != columns.end()) {
        add_leaves(field, leaves);
      }
    }
    return leaves;
  }

  std::unique_ptr<parquet::arrow::FileReader> reader_;
  std::shared_ptr<arrow::Schema> schema_;
  std::unique_ptr<arrow::RecordBatchReader> batches_;  // destroyed before the reader
  std::vector<int> groups_;
  std::int64_t first_row_ = 0;
  std::int64_t rows_ = 0;
  std::int64_t all_rows_ = 0;
  std::int64_t bytes_ = 0;
};

}  // namespace

std::unique_ptr<Batches> open_parquet(const TableRequest& request) { return std::make_unique<ParquetBatches>(request); }

}  // namespace kf::table
