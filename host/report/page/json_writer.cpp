#include "report/page/json_writer.h"

#include <array>
#include <charconv>
#include <cmath>

#include "report/read/character.h"

namespace kf::report {
namespace {

void add_escaped(std::string& out, unsigned char byte) {
  constexpr std::string_view kHex = "0123456789abcdef";
  out += "\\u00";
  out += kHex[byte >> 4U];
  out += kHex[byte & 15U];
}

template <class T, class... Style>
void add_number(std::string& out, T number, Style... style) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, style...).ptr;
  out.append(digits.data(), end);
}

}  // namespace

void JsonWriter::separate() {
  if (!first_) {
    text_ += ',';
  }
  first_ = false;
}

JsonWriter& JsonWriter::open(char bracket) {
  separate();
  text_ += bracket;
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  text_ += bracket;
  first_ = false;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  value(name);
  text_ += ':';
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  separate();
  text_ += '"';
  while (!text.empty()) {
    const std::size_t size = character_size(text);
    const auto byte = static_cast<unsigned char>(text.front());
    if (size == 0) {
      text_ += "\\ufffd";
    } else if (byte < 0x20 || byte == '"' || byte == '\\' || byte == '<' || byte == '>' || byte == '&' || byte == 0x7f) {
      add_escaped(text_, byte);
    } else {
      text_.append(text.substr(0, size));
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
  text_ += '"';
  return *this;
}

JsonWriter& JsonWriter::value(std::int64_t number) {
  separate();
  add_number(text_, number);
  return *this;
}

JsonWriter& JsonWriter::value(double number) {
  if (!std::isfinite(number)) {
    return null();
  }
  separate();
  add_number(text_, number, std::chars_format::general, 9);
  return *this;
}

JsonWriter& JsonWriter::value(bool yes) { return raw(yes ? "true" : "false"); }

JsonWriter& JsonWriter::null() { return raw("null"); }

JsonWriter& JsonWriter::raw(std::string_view json) {
  separate();
  text_ += json;
  return *this;
}

}  // namespace kf::report
