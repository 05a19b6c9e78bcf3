#include "data/file/utf8.h"

#include <simdjson.h>

#include <algorithm>
#include <array>

#include "core/text.h"

namespace kf {
namespace {

/// Bytes of the character that starts here; 0 when none does.
std::size_t character(std::string_view text) {
  for (std::size_t size = 1; size <= std::min<std::size_t>(4, text.size()); ++size) {
    if (valid_utf8(text.substr(0, size))) {
      return size;
    }
  }
  return 0;
}

}  // namespace

bool valid_utf8(std::string_view text) { return simdjson::validate_utf8(text.data(), text.size()); }

std::size_t invalid_utf8_at(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t size = static_cast<unsigned char>(text[at]) < 0x80 ? 1 : character(text.substr(at));
    if (size == 0) {
      break;
    }
    at += size;
  }
  return at;
}

std::string utf16_fault(std::string_view text) {
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
    return "UTF-16 text; convert it to UTF-8, as with iconv -f UTF-16 -t UTF-8";
  }
  // Letters of Latin scripts: every other byte is 0.
  const std::string_view head = text.substr(0, 4096);
  std::array<std::size_t, 2> zeros{};
  for (std::size_t i = 0; i < head.size(); ++i) {
    zeros[i % 2] += head[i] == '\0' ? 1 : 0;
  }
  const std::size_t high = zeros[1] > zeros[0] ? 1 : 0;  // where the high bytes stand
  if (head.size() >= 4 && 4 * zeros[high] >= head.size() && 8 * zeros[1 - high] <= zeros[high]) {
    return format("UTF-16 text without its mark (every other byte is 0); convert it to UTF-8, as with iconv -f UTF-16{} -t UTF-8",
                  high == 1 ? "LE" : "BE");
  }
  return {};
}

std::string utf8_fault(std::string_view text) {
  if (std::string wide = utf16_fault(text); !wide.empty()) {
    return wide;
  }
  const std::size_t at = invalid_utf8_at(text);
  constexpr std::string_view kDigits = "0123456789abcdef";
  const auto byte = at < text.size() ? static_cast<unsigned char>(text[at]) : 0U;
  const std::string hex{kDigits[byte >> 4], kDigits[byte & 15]};
  return format("not valid UTF-8 at byte {} of {} (0x{}); text must be UTF-8: convert it, as with iconv -f ISO-8859-1 -t UTF-8", at + 1,
                text.size(), hex);
}

std::int64_t count_characters(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
}

}  // namespace kf
