#pragma once
// Documents as packed sequences: the rows of a PackTable.

#include <memory>
#include <string>

#include "data/documents/documents.h"
#include "data/sequence/dataset.h"
#include "data/sequence/pack_table.h"

namespace kf {

class PackedDataset final : public Dataset {
 public:
  /// Makes the table. Throws Code::data when there is nothing to read.
  PackedDataset(std::shared_ptr<const Documents> documents, const PackOptions& options);

  std::int64_t size() const override { return table_.rows(); }
  /// There are no windows: throws.
  void get(std::int64_t index, std::span<std::int64_t> window) const override;
  /// Pieces side by side, each a document of its own, counted from 0; then padding.
  void row(std::int64_t index, std::optional<std::int64_t> eos, const RowView& out) const override;
  bool packed() const override { return true; }
  std::string describe() const override { return documents_->describe() + "; packed: " + table_.describe(); }
  std::string fingerprint() const override { return documents_->fingerprint(); }

  const Documents& documents() const { return *documents_; }
  const PackTable& table() const { return table_; }

 private:
  std::shared_ptr<const Documents> documents_;
  PackTable table_;
};

}  // namespace kf
