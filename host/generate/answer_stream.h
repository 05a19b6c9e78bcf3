#pragma once
// Text that comes token by token: stop texts that cross tokens, characters that cross tokens.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/tokenizer.h"

namespace kf {

/// The answer to a prompt, in whole characters. What may be the beginning of a stop text is held back until it is decided.
class AnswerStream {
 public:
  /// `tokenizer` outlives this. The last ids of the prompt tell how the first of the answer reads (a word's space). A stop text that is, or
  /// begins with, the name of a special token ("<|im_end|>") ends the answer at that token, which has no text.
  AnswerStream(const Tokenizer& tokenizer, std::span<const std::int64_t> prompt, std::vector<std::string> stop);

  /// The text that this id makes certain: none of them belongs to a stop text.
  std::string push(std::int64_t id);
  /// Whether a stop text has come; it and what follows are not part of the text.
  bool stopped() const { return stopped_; }
  /// What was held back, at the end of an answer without a stop text. `stopped` may be true afterwards.
  std::string finish();

 private:
  std::string certain(std::string_view text);

  TextStream text_;
  std::vector<std::string> stop_;
  std::vector<std::int64_t> stop_ids_;
  std::string pending_;
  bool stopped_ = false;
};

/// Bytes in, whole characters out: for terminals and JSON. Bytes that are no UTF-8 come as U+FFFD.
class WholeCharacters {
 public:
  std::string push(std::string_view bytes);
  /// What is left: U+FFFD for a character that was not finished.
  std::string finish();

 private:
  std::string pending_;
};

/// `bytes` with U+FFFD for what is no UTF-8.
std::string valid_utf8(std::string_view bytes);

}  // namespace kf
