#include "data/encoded_dataset.h"

#include <algorithm>

#include "core/error.h"
#include "core/text.h"
#include "data/digest.h"

namespace kf {

EncodedDataset::EncodedDataset(const TextCorpus& corpus, const Tokenizer& tokenizer, const std::string& tokenizer_name, std::int64_t window,
                               std::int64_t vocab_size, const std::string& what)
    : window_(window) {
  const std::optional<std::int64_t> eos = tokenizer.eos_id();
  for (const Document& document : corpus.documents) {
    for (const std::int64_t id : tokenizer.encode(document.text)) {
      KF_CHECK(id >= 0 && id < vocab_size, Code::data, "{}: the tokenizer {} gives the id {}, and model.vocab_size is {}", what,
               kf::quoted(tokenizer_name), id, vocab_size);
      ids_.push_back(static_cast<std::int32_t>(id));
    }
    if (eos && document.ends) {
      ids_.push_back(static_cast<std::int32_t>(*eos));
    }
  }
  KF_CHECK(size() > 0, Code::data,
           "{}: {} documents make {} ids, fewer than a window of {} (train.seq_len + 1); lower train.seq_len or bring more text", what,
           corpus.documents.size(), ids_.size(), window);
  description_ = format("{} {}, {} of text, {} tokens ({})", grouped(corpus.files), corpus.files == 1 ? "file" : "files",
                        human_bytes(corpus.bytes), grouped(static_cast<std::int64_t>(ids_.size())), tokenizer_name);
  Digest digest;
  digest.add(corpus.fingerprint);
  digest.add({reinterpret_cast<const char*>(ids_.data()), ids_.size() * sizeof(ids_[0])});
  fingerprint_ = digest.hex();
}

void EncodedDataset::get(std::int64_t index, std::span<std::int64_t> window) const {
  KF_CHECK(index >= 0 && index < size(), Code::data, "sample {} asked for, the text has {}", index, size());
  const auto from = ids_.begin() + index * window_;
  std::copy(from, from + static_cast<std::ptrdiff_t>(window.size()), window.begin());
}

}  // namespace kf
