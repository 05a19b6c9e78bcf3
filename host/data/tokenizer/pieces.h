#pragma once
// A text on its way through the pre-tokenizers: pieces, which are views of the text or of changed copies.

#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

struct TextPiece {
  std::string_view text;
  bool at_start = false;  // begins where the whole text begins
};

class TextPieces {
 public:
  std::vector<TextPiece> list;

  /// A copy that lives as long as the pieces.
  std::string_view keep(std::string text) { return kept_.emplace_back(std::move(text)); }
  void clear() {
    list.clear();
    kept_.clear();
  }

 private:
  std::deque<std::string> kept_;
};

}  // namespace kf
