#include "data/tokenizer/scanners.h"

#include <algorithm>
#include <memory>

namespace kf::scan {
namespace {

using unicode::Category;

struct Known {
  Pattern pattern;
  const char* name;
  std::optional<Dialect> only;  // whose dialect gives the text this meaning; none: all agree
  const char* text;
};

const Known kKnown[] = {
    {Pattern::gpt2, "gpt2", std::nullopt, R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"},
    {Pattern::tiktoken_gpt2, "tiktoken_gpt2", Dialect::rust,
     R"('(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s)"},
    {Pattern::cl100k, "cl100k", std::nullopt,
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {Pattern::tiktoken_cl100k, "tiktoken_cl100k", Dialect::rust,
     R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s)"},
    {Pattern::qwen2, "qwen2", std::nullopt,
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {Pattern::o200k, "o200k", std::nullopt,
     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
     R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
     R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {Pattern::tekken, "tekken", std::nullopt,
     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
     R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
     R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
};

std::uint8_t kind_of(std::uint32_t cp) {
  const std::uint32_t c = unicode::classes(cp);
  const auto has = [c](std::uint32_t mask, std::uint8_t flag) { return (c & mask) != 0 ? flag : std::uint8_t{0}; };
  constexpr std::uint32_t caseless = unicode::bits(Category::Lm, Category::Lo) | unicode::kMark;
  return static_cast<std::uint8_t>(has(unicode::kLetter, kL) | has(unicode::kNumber, kN) | has(unicode::kSpace, kS) |
                                   has(caseless | unicode::bits(Category::Lu, Category::Lt), kUpper) |
                                   has(caseless | unicode::bit(Category::Ll), kLower) | (cp == '\r' || cp == '\n' ? kBreak : 0));
}

}  // namespace

const std::array<std::uint8_t, 0x110000>& kinds() {
  static const std::unique_ptr<std::array<std::uint8_t, 0x110000>> table = [] {
    auto out = std::make_unique<std::array<std::uint8_t, 0x110000>>();
    for (std::uint32_t cp = 0; cp < 0x110000; ++cp) {
      (*out)[cp] = kind_of(cp);
    }
    return out;
  }();
  return *table;
}

Char Reader::wide(const char* p) const {
  const unicode::Decoded c = unicode::decode(p, end_);
  return {c.cp == unicode::kInvalid ? std::uint8_t{0} : kinds_[c.cp], c.size};
}

std::optional<Pattern> known_pattern(std::string_view regex, Dialect dialect) {
  for (const Known& known : kKnown) {
    if (regex == known.text && known.only.value_or(dialect) == dialect) {
      return known.pattern;
    }
  }
  return std::nullopt;
}

std::string_view pattern_text(Pattern pattern) {
  const auto* found = std::find_if(std::begin(kKnown), std::end(kKnown), [&](const Known& known) { return known.pattern == pattern; });
  return found->text;
}

std::optional<Pattern> pattern_named(std::string_view name) {
  for (const Known& known : kKnown) {
    if (name == known.name) {
      return known.pattern;
    }
  }
  return std::nullopt;
}

}  // namespace kf::scan
