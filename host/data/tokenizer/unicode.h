#pragma once
// Characters and what Unicode says of them: UTF-8 walked safely, general categories of Unicode 16.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace kf::unicode {

/// General categories, numbered as in utf8proc.
enum class Category : std::uint8_t {
  Cn,
  Lu,
  Ll,
  Lt,
  Lm,
  Lo,
  Mn,
  Mc,
  Me,
  Nd,
  Nl,
  No,
  Pc,
  Pd,
  Ps,
  Pe,
  Pi,
  Pf,
  Po,
  Sm,
  Sc,
  Sk,
  So,
  Zs,
  Zl,
  Zp,
  Cc,
  Cf,
  Cs,
  Co
};

constexpr std::uint32_t bit(Category c) { return 1U << static_cast<unsigned>(c); }
template <class... Cs>
constexpr std::uint32_t bits(Cs... categories) {
  return (bit(categories) | ...);
}
inline constexpr std::uint32_t kLetter = bits(Category::Lu, Category::Ll, Category::Lt, Category::Lm, Category::Lo);
inline constexpr std::uint32_t kMark = bits(Category::Mn, Category::Mc, Category::Me);
inline constexpr std::uint32_t kNumber = bits(Category::Nd, Category::Nl, Category::No);
inline constexpr std::uint32_t kPunctuation =
    bits(Category::Pc, Category::Pd, Category::Ps, Category::Pe, Category::Pi, Category::Pf, Category::Po);
/// White_Space of Unicode, which is no category: what \s means.
inline constexpr std::uint32_t kSpace = 1U << 31;

inline constexpr std::uint32_t kInvalid = 0xffffffff;
inline constexpr std::string_view kReplacement = "\xef\xbf\xbd";

/// bits(category) of each code point, and kSpace. Built once, in some milliseconds.
const std::array<std::uint32_t, 0x110000>& class_table();
inline std::uint32_t classes(std::uint32_t cp) { return cp < 0x110000 ? class_table()[cp] : bit(Category::Cn); }
inline bool is(std::uint32_t cp, std::uint32_t mask) { return (classes(cp) & mask) != 0; }

/// The character at `p`, and how many bytes it takes (1 to 4). A byte that is no UTF-8 gives kInvalid and takes 1.
struct Decoded {
  std::uint32_t cp;
  std::uint32_t size;
};
inline Decoded decode(const char* p, const char* end) {
  const auto at = [p](int i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(p[i])); };
  const std::uint32_t a = at(0);
  if (a < 0x80) {
    return {a, 1};
  }
  const auto follows = [&](int i) { return (at(i) & 0xc0U) == 0x80U; };
  if (a >= 0xc2 && a < 0xe0 && end - p >= 2 && follows(1)) {
    return {(a & 0x1fU) << 6 | (at(1) & 0x3fU), 2};
  }
  if (a >= 0xe0 && a < 0xf0 && end - p >= 3 && follows(1) && follows(2)) {
    const std::uint32_t cp = (a & 0x0fU) << 12 | (at(1) & 0x3fU) << 6 | (at(2) & 0x3fU);
    if (cp >= 0x800 && (cp < 0xd800 || cp > 0xdfff)) {
      return {cp, 3};
    }
  }
  if (a >= 0xf0 && a < 0xf5 && end - p >= 4 && follows(1) && follows(2) && follows(3)) {
    const std::uint32_t cp = (a & 0x07U) << 18 | (at(1) & 0x3fU) << 12 | (at(2) & 0x3fU) << 6 | (at(3) & 0x3fU);
    if (cp >= 0x10000 && cp < 0x110000) {
      return {cp, 4};
    }
  }
  return {kInvalid, 1};
}

/// The character that ends at `end`; the text must be UTF-8.
Decoded decode_before(const char* begin, const char* end);

void append(std::string& out, std::uint32_t cp);

/// `text` itself, or in `storage` with U+FFFD for what is no UTF-8: one for the beginning of a character, as Python and Rust read it.
std::string_view valid(std::string_view text, std::string& storage);

bool is_ascii(std::string_view text);
/// \w of Rust's regular expressions: Alphabetic, marks, decimal digits, connectors and joiners.
bool is_word(std::uint32_t cp);
/// Characters in valid text.
std::size_t count(std::string_view text);

enum class Form { nfc, nfd, nfkc, nfkd };
/// `text` must be UTF-8.
std::string normalize(std::string_view text, Form form);
/// Character by character, without context, as Rust's char::to_lowercase.
std::string lowercase(std::string_view text);

}  // namespace kf::unicode
