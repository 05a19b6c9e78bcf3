#pragma once
// Parquet files and Arrow files as one thing: record batches in order. Inside the module everything throws Problem; module.cpp catches.

#include <arrow/record_batch.h>
#include <arrow/result.h>
#include <arrow/status.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

#include "data/read/table_module.h"

namespace kf::table {

class Problem : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

inline void check(const arrow::Status& status) {
  if (!status.ok()) {
    throw Problem(status.message());
  }
}

template <class T>
T value_of(arrow::Result<T> result) {
  check(result.status());
  return std::move(result).ValueUnsafe();
}

class Batches {
 public:
  virtual ~Batches() = default;
  /// The next one, with the columns asked for at least; null at the end.
  virtual std::shared_ptr<arrow::RecordBatch> next() = 0;
  virtual std::shared_ptr<arrow::Schema> schema() const = 0;
  virtual std::int64_t first_row() const = 0;  // of the first batch, in the file
  virtual std::int64_t position() const = 0;
};

std::unique_ptr<Batches> open_parquet(const TableRequest& request);
std::unique_ptr<Batches> open_ipc(const TableRequest& request);

/// The columns of a table that hold what is asked for. Throws when one is not there, or twice, or of a type that cannot be read.
std::vector<std::string> columns_of(const arrow::Schema& schema, const TableRequest& request);

}  // namespace kf::table
