#include "data/stream_dataset.h"

#include "core/error.h"

namespace kf {

StreamDataset::StreamDataset(std::shared_ptr<const Documents> documents, std::int64_t window, const std::string& what)
    : documents_(std::move(documents)), window_(window) {
  KF_CHECK(size() > 0, Code::data,
           "{}: {} documents make {} ids, fewer than a window of {} (train.seq_len + 1); lower train.seq_len or bring more text", what,
           documents_->count(), documents_->tokens(), window);
}

void StreamDataset::get(std::int64_t index, std::span<std::int64_t> window) const {
  KF_CHECK(index >= 0 && index < size(), Code::data, "sample {} asked for, the text has {}", index, size());
  documents_->read(index * window_, window);
}

}  // namespace kf
