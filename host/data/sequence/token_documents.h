#pragma once
// Token files as documents: every `eos` ends one, and so does the end of a file. The index of a Megatron data set says itself where they
// begin.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/documents/documents.h"
#include "data/sequence/token_dataset.h"

namespace kf {

class TokenDocuments final : public Documents {
 public:
  /// Reads all ids of files without an index once, to find where documents end. Throws Code::data for ids outside of the vocabulary, when
  /// no file has an id, and naming the first file that needs an `eos` where there is none.
  TokenDocuments(const std::vector<fs::path>& files, const fs::path& root, std::optional<std::int64_t> eos,
                 const TokenFileOptions& options);

  std::int64_t count() const override { return static_cast<std::int64_t>(starts_.size()) - 1; }
  std::int64_t tokens() const override { return starts_.back(); }
  std::int64_t start(std::int64_t index) const override { return starts_[static_cast<std::size_t>(index)]; }
  void read(std::int64_t first, std::span<std::int64_t> out) const override;
  std::uint64_t text_hash(std::int64_t index) const override;
  std::string describe() const override { return files_.describe(); }
  std::string fingerprint() const override { return files_.fingerprint(); }
  const std::vector<TokenFile>& files() const { return files_.files(); }

 private:
  void find_documents(const TokenFile& file, std::int64_t begin, std::optional<std::int64_t> eos);

  TokenDataset files_;                   // windows of one id: all ids of all files
  std::vector<std::int64_t> starts_{0};  // of each document in the stream, and the end of the last
};

}  // namespace kf
