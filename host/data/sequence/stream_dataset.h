#pragma once
// Documents as one stream, cut into windows that may cross documents.

#include <memory>

#include "data/documents/documents.h"
#include "data/sequence/dataset.h"

namespace kf {

class StreamDataset final : public Dataset {
 public:
  /// `window` is train.seq_len + 1. Throws Code::data naming `what` when there is no window.
  StreamDataset(std::shared_ptr<const Documents> documents, std::int64_t window, const std::string& what, Windows how = Windows::apart);

  std::int64_t size() const override { return windows_in(documents_->tokens(), window_, how_); }
  std::int64_t inputs(std::int64_t index, std::int64_t /*seq_len*/) const override {
    return window_inputs(index, documents_->tokens(), window_, how_);
  }
  void get(std::int64_t index, std::span<std::int64_t> window) const override;
  /// Borders are those of the documents, and what their mask leaves out is no label.
  void row(std::int64_t index, std::optional<std::int64_t> eos, const RowView& out) const override;
  std::string describe() const override { return documents_->describe(); }
  std::string fingerprint() const override { return documents_->fingerprint(); }

 private:
  std::shared_ptr<const Documents> documents_;
  std::int64_t window_;
  Windows how_;
};

}  // namespace kf
