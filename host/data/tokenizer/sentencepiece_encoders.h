#pragma once
// How SentencePiece makes ids of normalized text: one encoder a kind of model.

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "data/tokenizer/merges.h"
#include "data/tokenizer/sentencepiece_model.h"
#include "data/tokenizer/trie.h"
#include "data/tokenizer/vocabulary.h"

namespace kf {

/// What encoding a text needs for a while; kept for the next one.
struct SpmScratch {
  Merges::Scratch merges;
  std::vector<std::uint32_t> symbols;
  std::vector<float> scores;
  std::vector<std::uint32_t> from;
  std::vector<std::uint32_t> ends;
};

/// How the normalized text becomes ids; the id of the unknown piece once for each unknown stretch.
class SpmEncoder {
 public:
  virtual ~SpmEncoder() = default;
  using Put = std::function<void(std::string_view, std::uint32_t)>;
  virtual void encode(std::string_view text, SpmScratch& scratch, const Put& put) const = 0;
};

/// By the kind of model. `user_symbols` and `ids` outlive it, as the spec does.
std::unique_ptr<SpmEncoder> make_spm_encoder(const spm::ModelSpec& spec, const Trie& user_symbols, const Vocabulary& ids,
                                             std::uint32_t unknown);

}  // namespace kf
