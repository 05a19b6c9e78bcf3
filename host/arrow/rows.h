#pragma once
// Record batches as rows of text.

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "arrow/batches.h"

namespace kf::table {

class Rows final : public TableRows {
 public:
  /// Throws Problem, or what Arrow throws.
  explicit Rows(const TableRequest& request);

  Step next() noexcept override;
  std::int64_t row() const noexcept override { return row_; }
  std::span<const std::string_view> values() const noexcept override { return values_; }
  std::span<const std::string> names() const noexcept override { return names_; }
  std::int64_t position() const noexcept override;
  const std::string& error() const noexcept override { return error_; }

 private:
  Step step();
  Step broken(std::string reason);
  Step read_fields();
  Step read_json();
  bool next_batch();

  TableRequest request_;
  std::unique_ptr<Batches> batches_;
  std::shared_ptr<arrow::RecordBatch> batch_;
  std::vector<std::shared_ptr<arrow::Array>> columns_;  // of the batch, by `names_`
  std::int64_t at_ = 0;                                 // in the batch
  std::int64_t row_ = -1;                               // in the file
  std::vector<std::string_view> values_;
  std::deque<std::string> printed_;
  std::vector<std::string> names_;
  std::string error_;
};

}  // namespace kf::table
