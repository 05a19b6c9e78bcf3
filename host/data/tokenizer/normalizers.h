#pragma once
// The normalizers of tokenizer.json: text to text, before it is split.

#include <memory>
#include <string>
#include <string_view>

#include "data/tokenizer/json.h"

namespace kf {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  /// `text` is UTF-8, and so is the result.
  virtual std::string apply(std::string_view text) const = 0;
  /// Whether ASCII text never changes.
  virtual bool keeps_ascii() const { return false; }
};

/// Throws Code::data for a type that is not supported, with its place.
std::unique_ptr<Normalizer> make_normalizer(const json::Place& spec);

}  // namespace kf
