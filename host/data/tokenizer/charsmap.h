#pragma once
// SentencePiece's precompiled character maps: a double-array trie (darts-clone) from text to its normal form.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

class Charsmap {
 public:
  Charsmap() = default;
  /// The blob of a SentencePiece model: size of the trie, the trie, the normal forms with zeros between. Throws Code::data where it is cut
  /// off; `where` names the place.
  Charsmap(std::string_view blob, const std::string& where);

  struct Match {
    std::size_t size = 0;  // bytes of the text; 0: nothing matches
    std::string_view normal;
  };
  Match longest(std::string_view text) const { return match(text, true); }
  Match shortest(std::string_view text) const { return match(text, false); }
  bool empty() const { return units_.empty(); }

 private:
  Match match(std::string_view text, bool longest) const;

  std::vector<std::uint32_t> units_;
  std::string normal_;
};

/// RFC 4648, padding required. Throws Code::data naming `where`.
std::string decode_base64(std::string_view text, const std::string& where);

}  // namespace kf
