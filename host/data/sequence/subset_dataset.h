#pragma once
// A random part of a data set, always the same: what a small run reads when it stands for a larger one.

#include <memory>
#include <string>

#include "core/feistel.h"
#include "data/sequence/dataset.h"

namespace kf {

class SubsetDataset final : public Dataset {
 public:
  /// `share` of the samples, rounded down. Throws Code::data naming `what` when that is none.
  SubsetDataset(std::unique_ptr<Dataset> all, double share, std::int64_t seed, const std::string& what);

  std::int64_t size() const override { return size_; }
  std::int64_t inputs(std::int64_t index, std::int64_t seq_len) const override { return all_->inputs(in_all(index), seq_len); }
  void get(std::int64_t index, std::span<std::int64_t> window) const override { all_->get(in_all(index), window); }
  void row(std::int64_t index, std::optional<std::int64_t> eos, const RowView& out) const override { all_->row(in_all(index), eos, out); }
  bool packed() const override { return all_->packed(); }
  bool any_thread() const override { return all_->any_thread(); }
  std::string describe() const override;
  std::string fingerprint() const override { return all_->fingerprint(); }

 private:
  std::int64_t in_all(std::int64_t index) const;

  std::unique_ptr<Dataset> all_;
  std::int64_t size_;
  Feistel places_;
};

}  // namespace kf
