#pragma once
// Text as one stream of a tokenizer's ids, each document followed by the end-of-document id, cut into windows that may cross documents.

#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/text_source.h"
#include "data/tokenizer/tokenizer.h"

namespace kf {

class EncodedDataset final : public Dataset {
 public:
  /// Encodes everything at once. `window` is train.seq_len + 1. Throws Code::data naming `what` when there is no whole window, and for ids
  /// outside of 0 to `vocab_size` - 1.
  EncodedDataset(const TextCorpus& corpus, const Tokenizer& tokenizer, const std::string& tokenizer_name, std::int64_t window,
                 std::int64_t vocab_size, const std::string& what);

  std::int64_t size() const override { return static_cast<std::int64_t>(ids_.size()) / window_; }
  void get(std::int64_t index, std::span<std::int64_t> window) const override;
  std::string describe() const override { return description_; }
  std::string fingerprint() const override { return fingerprint_; }

 private:
  std::vector<std::int32_t> ids_;
  std::int64_t window_;
  std::string description_;
  std::string fingerprint_;
};

}  // namespace kf
