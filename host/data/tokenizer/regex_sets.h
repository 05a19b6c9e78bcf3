#pragma once
// Sets of characters that regular expressions name: categories, scripts, properties, POSIX brackets, \w, \s, as members of a PCRE2 class.

#include <optional>
#include <string>
#include <string_view>

#include "data/tokenizer/scanners.h"

namespace kf::regex_set {

/// What may stand inside [...], or with `negated` inside [^...].
struct CharSet {
  std::string members;
  bool negated = false;

  std::string expression() const { return (negated ? "[^" : "[") + members + "]"; }
};

CharSet digits();
CharSet spaces();
/// Rust counts the joiners as parts of words, Oniguruma six fractions and superscripts of Latin-1, but not in a class.
CharSet word(scan::Dialect dialect, bool in_class);
/// \p{name}; capitals, blanks, _ and - of a name count for nothing. Nothing where the name is unknown.
std::optional<CharSet> property(std::string_view name);
/// [:name:], of Unicode in Oniguruma, of ASCII in Rust.
std::optional<CharSet> posix(std::string_view name, scan::Dialect dialect);

}  // namespace kf::regex_set
