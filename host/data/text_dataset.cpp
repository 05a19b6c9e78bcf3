#include "data/text_dataset.h"

#include <algorithm>

#include "core/error.h"
#include "core/text.h"
#include "data/tokenizer/tokenizer.h"

namespace kf {

TextDataset::TextDataset(TextCorpus corpus, std::int64_t window, const std::string& what)
    : corpus_(std::move(corpus)), starts_{0}, window_(window) {
  starts_.reserve(corpus_.documents.size() + 1);
  for (const Document& document : corpus_.documents) {
    starts_.push_back(starts_.back() + static_cast<std::int64_t>(document.text.size()) + (document.ends ? 1 : 0));
  }
  KF_CHECK(
      size() > 0, Code::data,
      "{}: {} documents in {} files make {} ids, fewer than a window of {} (train.seq_len + 1); lower train.seq_len or bring more text",
      what, corpus_.documents.size(), corpus_.files, starts_.back(), window);
}

void TextDataset::get(std::int64_t index, std::span<std::int64_t> window) const {
  KF_CHECK(index >= 0 && index < size(), Code::data, "sample {} asked for, the text has {}", index, size());
  const std::int64_t first = index * window_;
  auto document = static_cast<std::size_t>(std::upper_bound(starts_.begin(), starts_.end(), first) - starts_.begin() - 1);
  auto within = static_cast<std::size_t>(first - starts_[document]);
  for (std::size_t filled = 0; filled < window.size(); ++document, within = 0) {
    const auto& [text, ends] = corpus_.documents[document];
    const std::size_t count = std::min(text.size() - std::min(within, text.size()), window.size() - filled);
    const auto* from = reinterpret_cast<const unsigned char*>(text.data()) + within;
    std::copy(from, from + count, window.begin() + static_cast<std::ptrdiff_t>(filled));
    filled += count;
    if (ends && filled < window.size()) {
      window[filled++] = kByteEos;
    }
  }
}

std::string TextDataset::describe() const {
  return format("{} {}, {} of text, {} tokens (bytes)", grouped(corpus_.files), corpus_.files == 1 ? "file" : "files",
                human_bytes(corpus_.bytes), grouped(corpus_.tokens));
}

}  // namespace kf
