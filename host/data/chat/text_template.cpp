#include "data/chat/text_template.h"

#include <algorithm>

#include "core/error.h"
#include "core/text.h"

namespace kf {
namespace {

/// Whether a brace at `at` is doubled: then it is the character.
bool doubled(std::string_view pattern, std::size_t at) { return at + 1 < pattern.size() && pattern[at + 1] == pattern[at]; }

}  // namespace

TextTemplate::TextTemplate(std::string_view pattern, const std::string& key) {
  const auto add = [&](char c) {
    if (pieces_.empty() || pieces_.back().field != kNo) {
      pieces_.emplace_back();
    }
    pieces_.back().text += c;
  };
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if ((c == '{' || c == '}') && doubled(pattern, i)) {
      add(c);
      ++i;
    } else if (c == '{') {
      const std::size_t close = pattern.find('}', i);
      KF_CHECK(close != std::string_view::npos && close > i + 1 && pattern[i + 1] != '?', Code::config,
               "{} = {}: the brace at character {} {}; {name} stands for a field, {{ for a brace", key, kf::quoted(pattern), i + 1,
               close == std::string_view::npos ? "is not closed" : "holds no name");
      const std::string_view inside = pattern.substr(i + 1, close - i - 1);
      const std::size_t mark = inside.find('?');
      const std::string name(inside.substr(0, mark));
      const auto at = std::find(fields_.begin(), fields_.end(), name);
      const bool optional = mark != std::string_view::npos;
      pieces_.push_back({optional ? std::string(inside.substr(mark + 1)) : "", static_cast<std::size_t>(at - fields_.begin()), optional});
      if (at == fields_.end()) {
        fields_.push_back(name);
      }
      i = close;
    } else {
      KF_CHECK(c != '}', Code::config, "{} = {}: the brace at character {} closes nothing; }} stands for a brace", key, kf::quoted(pattern),
               i + 1);
      add(c);
    }
  }
}

bool TextTemplate::optional(std::size_t field) const {
  return std::all_of(pieces_.begin(), pieces_.end(), [&](const Piece& piece) { return piece.field != field || piece.optional; });
}

}  // namespace kf
