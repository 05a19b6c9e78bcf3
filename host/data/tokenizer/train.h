#pragma once
// Learns a byte-level BPE vocabulary from text.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/tokenizer/scanners.h"

namespace kf {

struct BpeTraining {
  std::uint32_t vocab_size = 0;  // ids in all: special tokens, 256 bytes, merges
  scan::Pattern pattern = scan::Pattern::cl100k;
  std::vector<std::string> special = {"<|endoftext|>"};
  std::int64_t min_count = 2;  // pairs seen less often are not merged
  int threads = 0;             // that count; 0: as many as there are cores
};

struct TrainedBpe {
  std::vector<std::string> tokens;                              // bytes, by id; special tokens first
  std::vector<std::pair<std::uint32_t, std::uint32_t>> merges;  // ids, in order
  std::int64_t bytes = 0;                                       // of text
  std::int64_t pieces = 0;                                      // words and the like that the pattern cut
  std::int64_t different = 0;                                   // of those, how many differ
};

/// Gives the next text, which lives until the next call; false at the end.
using NextText = std::function<bool(std::string_view&)>;

/// The pair of neighbours seen most often becomes a token, again and again; of pairs seen equally often the one whose ids are smaller, as
/// in Hugging Face's trainer. The same text gives the same vocabulary, whatever the number of threads. Special tokens standing in the text
/// are learned from as text. Throws Code::data for text too small for vocab_size, naming `what` it is.
TrainedBpe train_bpe(const NextText& next, const std::string& what, const BpeTraining& options);

/// As tokenizer.json, which Hugging Face's tokenizers read.
std::string tokenizer_json(const TrainedBpe& trained, const BpeTraining& options);

}  // namespace kf
