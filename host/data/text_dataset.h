#pragma once
// Text as one stream of byte ids, each document followed by 256, cut into windows that may cross documents.

#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/text_source.h"

namespace kf {

class TextDataset final : public Dataset {
 public:
  /// `window` is train.seq_len + 1. Throws Code::data naming `what` when there is no whole window.
  TextDataset(TextCorpus corpus, std::int64_t window, const std::string& what);

  std::int64_t size() const override { return starts_.back() / window_; }
  void get(std::int64_t index, std::span<std::int64_t> window) const override;
  std::string describe() const override;
  std::string fingerprint() const override { return corpus_.fingerprint; }

 private:
  TextCorpus corpus_;
  std::vector<std::int64_t> starts_;  // of each document in the stream, and the end of the last
  std::int64_t window_;
};

}  // namespace kf
