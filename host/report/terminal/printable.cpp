#include "report/terminal/printable.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>

#include "core/text.h"
#include "core/wrap.h"
#include "report/read/character.h"

namespace kf::report {
namespace {

std::uint32_t code_point(std::string_view character) {
  constexpr std::array<unsigned, 5> kMask{0, 0x7f, 0x1f, 0x0f, 0x07};
  std::uint32_t out = static_cast<unsigned char>(character[0]) & kMask[character.size()];
  for (const char byte : character.substr(1)) {
    out = out << 6U | (static_cast<unsigned char>(byte) & 0x3fU);
  }
  return out;
}

/// C0 and C1 controls, separators of lines, marks and overrides of direction, the byte order mark.
bool is_harmless(std::uint32_t c) {
  const bool control = c < 0x20 || (c >= 0x7f && c < 0xa0);
  const bool direction = c == 0x61c || c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
  return !control && !direction && c != 0xfeff;
}

bool is_set(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

}  // namespace

std::string printable(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = character_size(text.substr(at));
    const std::string_view bytes = text.substr(at, size == 0 ? 1 : size);
    if (size > 0 && is_harmless(code_point(bytes))) {
      out += bytes;
    } else {
      for (const char byte : bytes) {
        const auto value = static_cast<unsigned char>(byte);
        out += {'\\', 'x', kDigits[value >> 4U], kDigits[value & 15U]};
      }
    }
    at += bytes.size();
  }
  return out;
}

std::string shortened(std::string_view text, std::size_t columns) {
  if (columns_of(text) <= columns) {
    return std::string(text);
  }
  if (columns == 0) {
    return {};
  }
  std::string out;
  for (std::size_t at = 0, shown = 0; shown + 1 < columns; ++shown) {
    const std::size_t size = std::max<std::size_t>(1, character_size(text.substr(at)));
    out += text.substr(at, size);
    at += size;
  }
  return out + "…";
}

std::string fitted(std::string_view text, std::size_t columns, std::size_t indent) {
  if (columns <= indent) {
    return std::string(text);
  }
  std::string out;
  std::size_t shown = 0;
  const std::string lines = wrapped(text, columns, indent);
  for (std::size_t at = 0; at < lines.size();) {
    const std::size_t size = std::max<std::size_t>(1, character_size(std::string_view(lines).substr(at)));
    if (lines[at] == '\n') {
      shown = 0;
    } else if (shown++ == columns) {
      out += '\n' + std::string(indent, ' ');
      shown = indent + 1;
    }
    out.append(lines, at, size);
    at += size;
  }
  return out;
}

std::string colored(std::string_view text, Color color) {
  constexpr std::array<std::string_view, 9> kCodes{"", "31", "32", "33", "34", "35", "36", "2", "1"};
  if (color == Color::none) {
    return std::string(text);
  }
  return format("\x1b[{}m{}\x1b[0m", kCodes[static_cast<std::size_t>(color)], text);
}

Screen stdout_screen() {
  const char* const term = std::getenv("TERM");
  Screen out;
  out.columns = terminal_columns(STDOUT_FILENO);
  out.color = out.columns > 0 && term != nullptr && std::string_view(term) != "dumb" && !is_set("NO_COLOR");
  return out;
}

}  // namespace kf::report
