// What filters and methods do with text, origins included.

#include <utf8proc.h>

#include "core/error.h"
#include "data/template/functions.h"
#include "data/tokenizer/unicode.h"

namespace kf::jinja {
namespace {

/// White space as str.strip() of Python takes it.
bool is_space(std::uint32_t cp) { return unicode::is(cp, unicode::kSpace) || (cp >= 0x1c && cp <= 0x1f); }

void append_utf8(std::string& out, std::uint32_t cp) {
  utf8proc_uint8_t buffer[4];
  const auto size = utf8proc_encode_char(static_cast<utf8proc_int32_t>(cp), buffer);
  out.append(reinterpret_cast<const char*>(buffer), static_cast<std::size_t>(size));
}

}  // namespace

const Text& text_of(const Value& value, Text& room) {
  if (const Text* text = value.text()) {
    return *text;
  }
  room = printed(value);
  return room;
}

Text stripped(const Text& text, std::string_view drop, bool left, bool right) {
  const std::vector<std::size_t> at = characters(text.bytes);
  const std::string_view bytes(text.bytes);
  const auto dropped = [&](std::size_t i) {
    const std::string_view character = bytes.substr(at[i], at[i + 1] - at[i]);
    return drop.empty() ? is_space(unicode::decode(character.data(), character.data() + character.size()).cp)
                        : drop.find(character) != std::string_view::npos;
  };
  std::size_t begin = 0;
  std::size_t end = at.size() - 1;
  while (left && begin < end && dropped(begin)) {
    ++begin;
  }
  while (right && end > begin && dropped(end - 1)) {
    --end;
  }
  return text.part(at[begin], at[end]);
}

Text replaced(const Text& text, const Text& what, const Text& by, std::int64_t most) {
  if (what.empty()) {
    return text;
  }
  Text out;
  std::size_t done = 0;
  for (std::size_t at = text.bytes.find(what.bytes); at != std::string::npos && most != 0; at = text.bytes.find(what.bytes, done)) {
    out.append(text.part(done, at));
    out.append(by);
    done = at + what.size();
    --most;
  }
  out.append(text.part(done, text.size()));
  return out;
}

Text joined(const List& items, const Text& between) {
  Text out;
  Text room;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) {
      out.append(between);
    }
    out.append(text_of(items[i], room));
  }
  return out;
}

Text in_case(const Text& text, Case wanted) {
  Text out;
  bool start = true;  // of the text, or of a word for titles
  const char* const end = text.bytes.data() + text.size();
  for (std::size_t i = 0; i < text.size();) {
    const unicode::Decoded c = unicode::decode(text.bytes.data() + i, end);
    const bool upper = wanted == Case::upper || ((wanted == Case::capital || wanted == Case::title) && start);
    std::string changed;
    if (c.cp == unicode::kInvalid) {
      changed = text.bytes.substr(i, c.size);
    } else {
      const auto cp = static_cast<utf8proc_int32_t>(c.cp);
      append_utf8(changed, static_cast<std::uint32_t>(upper ? utf8proc_toupper(cp) : utf8proc_tolower(cp)));
    }
    start = wanted == Case::title && !unicode::is(c.cp, unicode::kLetter);
    out.append(changed, text.from[i]);
    i += c.size;
  }
  return out;
}

}  // namespace kf::jinja
