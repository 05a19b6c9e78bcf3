#include "data/tokenizer/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "core/error.h"
#include "core/text.h"
#include "data/tokenizer/unicode_newer.h"
#include "data/tokenizer/unicode_older.h"

namespace kf::unicode {
namespace {

std::uint32_t white_space(std::uint32_t cp) {
  const bool is_white = (cp >= 0x09 && cp <= 0x0d) || cp == 0x20 || cp == 0x85 || cp == 0xa0 || cp == 0x1680 ||
                        (cp >= 0x2000 && cp <= 0x200a) || cp == 0x2028 || cp == 0x2029 || cp == 0x202f || cp == 0x205f || cp == 0x3000;
  return is_white ? kSpace : 0;
}

std::unique_ptr<std::array<std::uint32_t, 0x110000>> make_table() {
  auto table = std::make_unique<std::array<std::uint32_t, 0x110000>>();
  for (std::uint32_t cp = 0; cp < 0x110000; ++cp) {
    (*table)[cp] = bit(static_cast<Category>(utf8proc_category(static_cast<utf8proc_int32_t>(cp)))) | white_space(cp);
  }
  for (const NewerRange& range : kNewer) {
    std::fill(table->begin() + range.first, table->begin() + range.last + 1, bit(range.category));
  }
  return table;
}

}  // namespace

const std::array<std::uint32_t, 0x110000>& class_table() {
  static const std::unique_ptr<std::array<std::uint32_t, 0x110000>> table = make_table();
  return *table;
}

Decoded decode_before(const char* begin, const char* end) {
  const char* p = end - 1;
  while (p > begin && end - p < 4 && (static_cast<unsigned char>(*p) & 0xc0U) == 0x80U) {
    --p;
  }
  const Decoded c = decode(p, end);
  return {c.cp, static_cast<std::uint32_t>(end - p)};
}

void append(std::string& out, std::uint32_t cp) {
  const auto put = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (cp < 0x80) {
    put(cp);
  } else if (cp < 0x800) {
    put(0xc0 | cp >> 6);
    put(0x80 | (cp & 0x3f));
  } else if (cp < 0x10000) {
    put(0xe0 | cp >> 12);
    put(0x80 | (cp >> 6 & 0x3f));
    put(0x80 | (cp & 0x3f));
  } else {
    put(0xf0 | cp >> 18);
    put(0x80 | (cp >> 12 & 0x3f));
    put(0x80 | (cp >> 6 & 0x3f));
    put(0x80 | (cp & 0x3f));
  }
}

namespace {

/// Bytes of what begins a character at `p` and does not go on as one; the standard advises one U+FFFD for them (Unicode 16, section 3.9).
std::size_t ill_formed(const char* p, const char* end) {
  const auto at = [p](int i) { return static_cast<unsigned>(static_cast<unsigned char>(p[i])); };
  const unsigned lead = at(0);
  const unsigned low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  const unsigned high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  if (lead < 0xe0 || lead > 0xf4 || end - p < 2 || at(1) < low || at(1) > high) {
    return 1;
  }
  return lead >= 0xf0 && end - p >= 3 && (at(2) & 0xc0U) == 0x80 ? 3 : 2;
}

}  // namespace

std::string_view valid(std::string_view text, std::string& storage) {
  if (is_utf8(text)) {
    return text;
  }
  storage.clear();
  const char* end = text.data() + text.size();
  for (const char* p = text.data(); p < end;) {
    const Decoded c = decode(p, end);
    c.cp == kInvalid ? storage.append(kReplacement) : storage.append(p, c.size);
    p += c.cp == kInvalid ? ill_formed(p, end) : c.size;
  }
  return storage;
}

bool is_ascii(std::string_view text) {
  const char* p = text.data();
  std::size_t left = text.size();
  for (; left >= 8; p += 8, left -= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, p, 8);
    if ((word & 0x8080808080808080U) != 0) {
      return false;
    }
  }
  return std::all_of(p, p + left, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

bool is_word(std::uint32_t cp) {
  constexpr std::uint32_t mask = kLetter | kMark | bits(Category::Nl, Category::Nd, Category::Pc);
  return is(cp, mask) || cp == 0x200c || cp == 0x200d || (cp >= 0x24b6 && cp <= 0x24e9) || (cp >= 0x1f130 && cp <= 0x1f149) ||
         (cp >= 0x1f150 && cp <= 0x1f169) || (cp >= 0x1f170 && cp <= 0x1f189);
}

std::size_t count(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }));
}

namespace {

std::string normalize_all(std::string_view text, Form form) {
  const bool compose = form == Form::nfc || form == Form::nfkc;
  const bool compat = form == Form::nfkc || form == Form::nfkd;
  const auto options =
      static_cast<utf8proc_option_t>((compose ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) | (compat ? UTF8PROC_COMPAT : 0) | UTF8PROC_STABLE);
  utf8proc_uint8_t* raw = nullptr;
  const utf8proc_ssize_t size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()), &raw, options);
  const std::unique_ptr<utf8proc_uint8_t, void (*)(void*)> owned(raw, std::free);
  KF_CHECK(size >= 0, Code::other, "Unicode normalization failed: {}", utf8proc_errmsg(size));
  return {reinterpret_cast<const char*>(raw), static_cast<std::size_t>(size)};
}

/// Characters whose decomposition the libraries do not know yet. All begin something new, so that a text may be cut at them.
bool stays_whole(std::uint32_t cp, bool compat) { return cp == 0x11938 || (compat && within(kNoCompatibility, cp)); }

/// Small forms that utf8proc does not know and Rust does: Unicode 16 and 17.
std::uint32_t newer_lowercase(std::uint32_t cp) {
  switch (cp) {
    case 0x1c89:
    case 0xa7cc:
    case 0xa7ce:
    case 0xa7d2:
    case 0xa7d4:
    case 0xa7da: return cp + 1;
    case 0xa7cb: return 0x264;
    case 0xa7dc: return 0x19b;
    default: break;
  }
  return cp >= 0x10d50 && cp <= 0x10d65 ? cp + 0x20 : cp >= 0x16ea0 && cp <= 0x16eb8 ? cp + 0x1b : cp;
}

}  // namespace

std::string normalize(std::string_view text, Form form) {
  if (is_ascii(text)) {
    return std::string(text);
  }
  if (form == Form::nfc) {
    return normalize_all(text, form);
  }
  const bool compat = form != Form::nfd;
  std::string out;
  const char* end = text.data() + text.size();
  const char* from = text.data();
  for (const char* p = from; p < end;) {
    const Decoded c = decode(p, end);
    if (c.size >= 3 && stays_whole(c.cp, compat)) {
      out += normalize_all({from, static_cast<std::size_t>(p - from)}, form);
      out.append(p, c.size);
      from = p + c.size;
    }
    p += c.size;
  }
  return out + normalize_all({from, static_cast<std::size_t>(end - from)}, form);
}

std::string lowercase(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  const char* end = text.data() + text.size();
  for (const char* p = text.data(); p < end;) {
    const Decoded c = decode(p, end);
    if (c.cp == 0x130) {  // the one capital whose small form is two characters
      out += "i\xcc\x87";
    } else {
      append(out, newer_lowercase(static_cast<std::uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c.cp)))));
    }
    p += c.size;
  }
  return out;
}

}  // namespace kf::unicode
