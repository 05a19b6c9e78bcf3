#pragma once
// Hand-written equivalents of the split patterns that byte-level tokenizers use: each finds where the piece that begins at `p` ends. They
// are proven equal to the patterns by tests/unit/data/tokenizer/scanners_test.cpp, against PCRE2 on random text.
//
// A byte that is no UTF-8 counts as a character that is neither letter, number nor space.

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "data/tokenizer/unicode.h"

namespace kf::scan {

/// The patterns. "cl100k" is that of Llama 3 and of older releases of tiktoken, too; "tiktoken_cl100k" that of newer releases, which keeps
/// blanks at the end of a text in one piece.
enum class Pattern { gpt2, tiktoken_gpt2, cl100k, tiktoken_cl100k, qwen2, o200k, tekken };

/// Whose regular expressions a pattern is written for: Oniguruma in tokenizer.json, Rust's in tiktoken and tekken files.
enum class Dialect { onig, rust };

/// The scanner for a pattern's text; none where it has to be run as a regular expression.
std::optional<Pattern> known_pattern(std::string_view regex, Dialect dialect);
/// The text of a pattern.
std::string_view pattern_text(Pattern pattern);
/// "gpt2", "cl100k", ...; none for another word.
std::optional<Pattern> pattern_named(std::string_view name);

// --- what a scanner asks of a character ---
inline constexpr std::uint8_t kL = 1;                 // letter
inline constexpr std::uint8_t kN = 2;                 // number
inline constexpr std::uint8_t kS = 4;                 // white space
inline constexpr std::uint8_t kBreak = 8;             // \r or \n
inline constexpr std::uint8_t kUpper = 16;            // [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]
inline constexpr std::uint8_t kLower = 32;            // [\p{Ll}\p{Lm}\p{Lo}\p{M}]
inline constexpr std::uint8_t kPlain = kL | kN | kS;  // none of these: punctuation and the rest

/// By code point. Built once.
const std::array<std::uint8_t, 0x110000>& kinds();

struct Char {
  std::uint8_t kind;
  std::uint32_t size;
};

#if defined(__SSE2__)
/// How many of the 16 bytes at `p` come before the first that is no ASCII letter; where `lower`, no small one.
template <bool lower>
inline unsigned ascii_letters(const char* p) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  const __m128i folded = lower ? bytes : _mm_or_si128(bytes, _mm_set1_epi8(0x20));
  // As signed numbers 'a'..'z' become the 26 least ones; that is one comparison.
  const __m128i moved = _mm_add_epi8(folded, _mm_set1_epi8(static_cast<char>(0x80 - 'a')));
  const __m128i letters = _mm_cmplt_epi8(moved, _mm_set1_epi8(static_cast<char>(0x80 + 26)));
  return static_cast<unsigned>(std::countr_one(static_cast<std::uint32_t>(_mm_movemask_epi8(letters))));
}
#endif

class Reader {
 public:
  explicit Reader(const char* end) : kinds_(kinds().data()), end_(end) {}

  /// `p` must be below the end.
  Char at(const char* p) const {
    const auto byte = static_cast<unsigned char>(*p);
    return byte < 0x80 ? Char{kinds_[byte], 1} : wide(p);
  }
  /// The end of the run of characters that have a bit of `mask` (or none, where `wanted` is false).
  template <bool wanted = true>
  const char* run(const char* p, std::uint8_t mask) const {
    while (p < end_) {
      const Char c = at(p);
      if (((c.kind & mask) != 0) != wanted) {
        break;
      }
      p += c.size;
    }
    return p;
  }
  /// run(p, kL), or with `lower` run(p, kLower): 16 bytes at once.
  template <bool lower = false>
  const char* letters(const char* p) const {
#if defined(__SSE2__)
    while (end_ - p >= 16) {
      const unsigned count = ascii_letters<lower>(p);
      p += count;
      if (count < 16) {
        if (static_cast<signed char>(*p) >= 0) [[likely]] {
          return p;
        }
        break;
      }
    }
#endif
    return run(p, lower ? kLower : kL);
  }
  const char* end() const { return end_; }

 private:
  Char wide(const char* p) const;

  const std::uint8_t* kinds_;
  const char* end_;
};

/// The end of a contraction ('s 't 're 've 'm 'll 'd) at `p`, where *p is an apostrophe; `p` itself where there is none.
template <bool any_case>
inline const char* contraction(const char* p, const char* end) {
  const auto fold = [](char c) { return any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  if (end - p < 2) {
    return p;
  }
  const char a = fold(p[1]);
  if (a == 's' || a == 't' || a == 'm' || a == 'd') {
    return p + 2;
  }
  if (end - p < 3) {
    return p;
  }
  const char b = fold(p[2]);
  if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l')) {
    return p + 3;
  }
  // U+017F, the long s, folds to s.
  return any_case && p[1] == '\xc5' && p[2] == '\xbf' ? p + 3 : p;
}

/// \s+(?!\S)|\s+ where \s+ ends at `stop`: all at the end of the text, else all but the last character, unless it is the only one.
inline const char* blanks(const char* p, const char* stop, const char* end) {
  if (stop == end) {
    return stop;
  }
  const char* last = stop - 1;
  while ((static_cast<unsigned char>(*last) & 0xc0U) == 0x80U) {
    --last;
  }
  return last == p ? stop : last;
}

/// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
struct Gpt2 {
  static const char* next(const char* p, const Reader& in) {
    if (*p == '\'') {
      if (const char* stop = contraction<false>(p, in.end()); stop != p) {
        return stop;
      }
    }
    const char* q = *p == ' ' && p + 1 < in.end() ? p + 1 : p;
    Char c = in.at(q);
    if ((c.kind & kS) != 0) {
      return blanks(p, in.run(q, kS), in.end());
    }
    q += c.size;
    if ((c.kind & kL) != 0) {
      return in.letters(q);
    }
    return (c.kind & kN) != 0 ? in.run(q, kN) : in.run<false>(q, kPlain);
  }
};

/// `count` numbers at most; p is at one.
template <int count>
inline const char* numbers(const char* p, const Reader& in) {
  for (int i = 0; i < count && p < in.end(); ++i) {
    const Char c = in.at(p);
    if ((c.kind & kN) == 0) {
      break;
    }
    p += c.size;
  }
  return p;
}

/// \s*[\r\n]+|\s+(?!\S)|\s+, from `p`; with `tail_first` the white space that ends a text is one piece.
template <bool tail_first>
inline const char* space(const char* p, const Reader& in) {
  const char* stop = p;
  const char* after_break = nullptr;
  while (stop < in.end()) {
    const Char c = in.at(stop);
    if ((c.kind & kS) == 0) {
      break;
    }
    stop += c.size;
    after_break = (c.kind & kBreak) != 0 ? stop : after_break;
  }
  if (tail_first && stop == in.end()) {
    return stop;
  }
  return after_break != nullptr ? after_break : blanks(p, stop, in.end());
}

/// [^\s\p{L}\p{N}]+[\r\n]* from its second character on; with `slash` [\r\n/]*.
template <bool slash>
inline const char* plain(const char* p, const Reader& in) {
  p = in.run<false>(p, kPlain);
  while (p < in.end() && (*p == '\r' || *p == '\n' || (slash && *p == '/'))) {
    ++p;
  }
  return p;
}

/// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,D}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
template <int digits, bool tail_first>
struct Cl100k {
  static const char* next(const char* p, const Reader& in) {
    const Char c = in.at(p);
    const char* q = p + c.size;
    if ((c.kind & kL) != 0) {
      return in.letters(q);
    }
    if ((c.kind & kN) != 0) {
      return numbers<digits>(p, in);
    }
    if (*p == '\'') {
      if (const char* stop = contraction<true>(p, in.end()); stop != p) {
        return stop;
      }
    }
    if (q < in.end() && (c.kind & kBreak) == 0) {
      const Char d = in.at(q);
      if ((d.kind & kL) != 0) {
        return in.letters(q + d.size);
      }
      if (*p == ' ' && (d.kind & kPlain) == 0) {
        return plain<false>(q + d.size, in);
      }
    }
    return (c.kind & kS) != 0 ? space<tail_first>(p, in) : plain<false>(q, in);
  }
};

/// o200k: [^\r\n\p{L}\p{N}]?[U]*[W]+C?|[^\r\n\p{L}\p{N}]?[U]+[W]*C?|\p{N}{1,D}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
/// with U = upper case, W = lower case, both with what has no case and with marks, C = contractions (not in tekken).
template <int digits, bool contractions>
struct O200k {
  static const char* next(const char* p, const Reader& in) {
    const Char c = in.at(p);
    const char* q = p + c.size;
    if ((c.kind & kN) != 0) {
      return numbers<digits>(p, in);
    }
    // A small letter, behind nothing or one character that may lead: by far the most, and no other alternative is tried before.
    const char* first = (c.kind & (kL | kBreak)) == 0 ? q : p;
    const bool small = first < in.end() && *first >= 'a' && *first <= 'z';
    if (const char* stop = small ? in.letters<true>(first + 1) : word(p, q, c.kind, in)) {
      if (contractions && stop < in.end() && *stop == '\'') {
        return contraction<true>(stop, in.end());
      }
      return stop;
    }
    if (*p == ' ' && q < in.end()) {
      const Char d = in.at(q);
      if ((d.kind & kPlain) == 0) {
        return plain<true>(q + d.size, in);
      }
    }
    return (c.kind & kS) != 0 ? space<false>(p, in) : plain<true>(q, in);
  }

 private:
  /// Both alternatives for words, each with and without a character before it, in the order in which a regular expression tries them.
  static const char* word(const char* p, const char* q, std::uint8_t kind, const Reader& in) {
    const bool may_lead = (kind & (kL | kBreak)) == 0;
    const bool in_word = (kind & (kUpper | kLower)) != 0;
    const char* stop = may_lead ? lower_end(q, in) : nullptr;
    if (stop == nullptr && in_word) {
      stop = lower_end(p, in);
    }
    if (stop == nullptr && may_lead) {
      stop = upper_end(q, in);
    }
    return stop == nullptr && in_word ? upper_end(p, in) : stop;
  }
  /// [U]*[W]+: where [U]* took all, it gives back down to the last character that is in both.
  static const char* lower_end(const char* p, const Reader& in) {
    const char* both = nullptr;
    while (p < in.end()) {
      const Char c = in.at(p);
      if ((c.kind & kUpper) == 0) {
        if ((c.kind & kLower) != 0) {
          return in.letters<true>(p + c.size);
        }
        break;
      }
      p += c.size;
      both = (c.kind & kLower) != 0 ? p : both;
    }
    return both;
  }
  /// [U]+; that no [W] follows is known.
  static const char* upper_end(const char* p, const Reader& in) {
    const char* stop = in.run(p, kUpper);
    return stop == p ? nullptr : stop;
  }
};

/// Calls body(Scanner{}) with the scanner of `pattern`.
template <class Body>
decltype(auto) with_scanner(Pattern pattern, const Body& body) {
  switch (pattern) {
    case Pattern::gpt2:
    case Pattern::tiktoken_gpt2: return body(Gpt2{});
    case Pattern::cl100k: return body(Cl100k<3, false>{});
    case Pattern::tiktoken_cl100k: return body(Cl100k<3, true>{});
    case Pattern::qwen2: return body(Cl100k<1, false>{});
    case Pattern::o200k: return body(O200k<3, true>{});
    case Pattern::tekken: break;
  }
  return body(O200k<1, false>{});
}

}  // namespace kf::scan
