#pragma once
// The decoders of tokenizer.json: tokens as the vocabulary spells them to text.

#include <memory>
#include <string>
#include <vector>

#include "data/tokenizer/json.h"

namespace kf {

class Decoder {
 public:
  virtual ~Decoder() = default;
  /// Changes the tokens, or joins some; what they are joined gives the text.
  virtual void apply(std::vector<std::string>& tokens) const = 0;
  /// Whether it only turns letters into bytes, token by token.
  virtual bool is_byte_level() const { return false; }
};

std::unique_ptr<Decoder> make_decoder(const json::Place& spec);

/// A token's bytes by the letters that spell them; its own bytes where one of its characters is none of those.
std::string byte_level_bytes(std::string_view token);

}  // namespace kf
