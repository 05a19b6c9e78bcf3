#pragma once
// Tokens beside the model: special ones and words that were added. They are found in the text before anything else is done to it.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/tokenizer.h"
#include "data/tokenizer/trie.h"

namespace kf {

struct AddedToken {
  std::string content;
  std::uint32_t id = 0;
  bool single_word = false;
  bool lstrip = false;      // takes the white space on its left
  bool rstrip = false;      // and on its right
  bool normalized = false;  // looked for after normalization
  bool special = false;
};

/// A stretch of text: an added token, or what lies between them (token null).
struct TextStretch {
  std::size_t begin;
  std::size_t end;
  const AddedToken* token;
};

/// Finds tokens from left to right, the longest at each place.
class AddedTokens {
 public:
  /// `text` is how it is looked for (the content, normalized or not).
  void add(const AddedToken& token, std::string_view text);
  bool empty() const { return trie_.empty(); }

  /// Covers `text` with stretches. Returns how often special tokens stand there; with SpecialText::text they are no tokens, with
  /// SpecialText::error the first throws. Those that lie within a stretch of `written` are tokens in any case, and not counted; where there
  /// is one, marks of chats that a tokenizer does not call special ("<|user|>") are treated as special ones.
  std::size_t find(std::string_view text, SpecialText special, std::vector<TextStretch>& out,
                   std::span<const ByteRange> written = {}) const;

 private:
  std::size_t next_start(std::string_view text, std::size_t from) const;

  Trie trie_;
  std::vector<std::unique_ptr<AddedToken>> tokens_;
  std::string starts_;  // the bytes with which tokens begin
};

}  // namespace kf
