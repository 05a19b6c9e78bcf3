#pragma once
// The models of tokenizer.json that work on characters: from a piece of text to ids. (Byte-level BPE has its own class, ByteBpe.)

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/json.h"
#include "data/tokenizer/merges.h"
#include "data/tokenizer/trie.h"
#include "data/tokenizer/vocabulary.h"

namespace kf {

class TextModel {
 public:
  struct Scratch {
    Merges::Scratch merges;
    std::vector<std::uint32_t> ids;
    std::vector<double> scores;
    std::vector<std::uint32_t> from;
  };

  virtual ~TextModel() = default;
  /// `piece` is UTF-8 and not empty.
  virtual void encode(std::string_view piece, std::vector<std::uint32_t>& out, Scratch& scratch) const = 0;
};

/// What a BPE model's JSON says.
struct BpeSpec {
  std::vector<std::pair<std::string, std::string>> merges;
  std::optional<std::string> unknown;
  std::string prefix;  // of pieces that continue a word
  std::string suffix;  // of pieces that end a word
  bool fuse_unknown = false;
  bool byte_fallback = false;
  bool ignore_merges = false;
};

BpeSpec read_bpe(const json::Place& spec);
/// Merges by ids. Throws Code::data for a merge of what is no token, naming `where` and its number.
Merges make_merges(const BpeSpec& spec, const Vocabulary& vocabulary, const std::string& where);

std::unique_ptr<TextModel> make_bpe(const BpeSpec& spec, const Vocabulary& vocabulary, const std::string& where);
std::unique_ptr<TextModel> make_unigram(const json::Place& spec, const Vocabulary& vocabulary);
std::unique_ptr<TextModel> make_wordpiece(const json::Place& spec, const Vocabulary& vocabulary);
std::unique_ptr<TextModel> make_wordlevel(const json::Place& spec, const Vocabulary& vocabulary);

/// "<0x0A>" for each byte where the vocabulary has it.
std::vector<std::optional<std::uint32_t>> byte_tokens(const Vocabulary& vocabulary);

}  // namespace kf
