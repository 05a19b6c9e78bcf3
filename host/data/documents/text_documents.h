#pragma once
// Text as byte ids, where it lies: documents are mapped, nothing is tokenized. Each ends with 256 unless add_eos is off.

#include <string>
#include <vector>

#include "data/documents/documents.h"
#include "data/documents/text_source.h"

namespace kf {

class TextDocuments final : public Documents {
 public:
  explicit TextDocuments(TextCorpus corpus);

  std::int64_t count() const override { return static_cast<std::int64_t>(corpus_.documents.size()); }
  std::int64_t tokens() const override { return starts_.back(); }
  std::int64_t start(std::int64_t index) const override { return starts_[static_cast<std::size_t>(index)]; }
  void read(std::int64_t first, std::span<std::int64_t> out) const override;
  std::uint64_t text_hash(std::int64_t index) const override;
  std::string describe() const override;
  std::string fingerprint() const override { return corpus_.fingerprint; }

 private:
  TextCorpus corpus_;
  std::vector<std::int64_t> starts_;  // of each document in the stream, and the end of the last
};

}  // namespace kf
