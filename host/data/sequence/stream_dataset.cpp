#include "data/sequence/stream_dataset.h"

#include <vector>

#include "core/error.h"
#include "data/sequence/packing.h"

namespace kf {

StreamDataset::StreamDataset(std::shared_ptr<const Documents> documents, std::int64_t window, const std::string& what, Windows how)
    : documents_(std::move(documents)), window_(window), how_(how) {
  KF_CHECK(size() > 0 || how == Windows::apart, Code::data, "{}: {} documents make {} ids; an evaluation needs two", what,
           documents_->count(), documents_->tokens());
  KF_CHECK(size() > 0, Code::data,
           "{}: {} documents make {} ids, fewer than a window of {} (train.seq_len + 1); lower train.seq_len or bring more text", what,
           documents_->count(), documents_->tokens(), window);
}

void StreamDataset::get(std::int64_t index, std::span<std::int64_t> window) const {
  KF_CHECK(index >= 0 && index < size(), Code::data, "sample {} asked for, the text has {}", index, size());
  documents_->read(window_start(index, window_, how_), window);
}

void StreamDataset::row(std::int64_t index, std::optional<std::int64_t> /*eos*/, const RowView& out) const {
  std::vector<std::int64_t> window(out.tokens.size() + 1);
  get(index, window);
  split_window(window, out.tokens, out.labels);
  const std::int64_t first = window_start(index, window_, how_);
  if (documents_->has_mask()) {
    std::vector<std::uint8_t> counts(window.size());
    documents_->read_mask(first, counts);
    for (std::size_t t = 0; t < out.labels.size(); ++t) {
      out.labels[t] = counts[t + 1] != 0 ? out.labels[t] : kIgnore;
    }
  }
  if (out.doc_ids.empty()) {
    return;
  }
  std::int64_t document = documents_->document_at(first);
  std::int64_t number = 0;
  for (std::size_t t = 0; t < out.doc_ids.size(); ++t) {
    out.doc_ids[t] = number;
    const std::int64_t next = first + static_cast<std::int64_t>(t) + 1;
    if (next == documents_->start(document + 1)) {
      out.labels[t] = kIgnore;  // the first id of the next document
      ++number;
      while (document + 1 < documents_->count() && documents_->start(document + 1) <= next) {
        ++document;  // over empty ones, too
      }
    }
  }
}

}  // namespace kf
