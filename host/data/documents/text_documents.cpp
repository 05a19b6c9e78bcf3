#include "data/documents/text_documents.h"

#include <algorithm>

#include "core/digest.h"
#include "core/error.h"
#include "data/tokenizer/tokenizer.h"

namespace kf {

TextDocuments::TextDocuments(TextCorpus corpus) : corpus_(std::move(corpus)), starts_{0} {
  starts_.reserve(corpus_.documents.size() + 1);
  for (const Document& document : corpus_.documents) {
    starts_.push_back(starts_.back() + static_cast<std::int64_t>(document.text.size()) + (document.ends ? 1 : 0));
  }
}

void TextDocuments::read(std::int64_t first, std::span<std::int64_t> out) const {
  KF_CHECK(first >= 0 && first <= tokens() && static_cast<std::int64_t>(out.size()) <= tokens() - first, Code::data,
           "ids {} to {} asked for, the text has {}", first, first + static_cast<std::int64_t>(out.size()), tokens());
  if (out.empty()) {
    return;
  }
  auto document = static_cast<std::size_t>(document_at(first));
  auto within = static_cast<std::size_t>(first - starts_[document]);
  for (std::size_t filled = 0; filled < out.size(); ++document, within = 0) {
    const auto& [text, ends] = corpus_.documents[document];
    const std::size_t count = std::min(text.size() - std::min(within, text.size()), out.size() - filled);
    const auto* from = reinterpret_cast<const unsigned char*>(text.data()) + within;
    std::copy(from, from + count, out.begin() + static_cast<std::ptrdiff_t>(filled));
    filled += count;
    if (ends && filled < out.size()) {
      out[filled++] = kByteEos;
    }
  }
}

std::uint64_t TextDocuments::text_hash(std::int64_t index) const { return hash64(corpus_.documents[static_cast<std::size_t>(index)].text); }

std::string TextDocuments::describe() const {
  return format("{} {}, {} of text, {} tokens (bytes)", grouped(corpus_.files), corpus_.files == 1 ? "file" : "files",
                human_bytes(corpus_.bytes), grouped(corpus_.tokens));
}

}  // namespace kf
