#include "data/read/utf8.h"

#include <simdjson.h>

#include <algorithm>

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

std::int64_t count_characters(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
}

}  // namespace kf
