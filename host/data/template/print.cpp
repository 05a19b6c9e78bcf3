// Values as text: as Python prints them, and as JSON.

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "core/error.h"
#include "data/template/value.h"
#include "data/tokenizer/unicode.h"

namespace kf::jinja {
namespace {

/// The first origin in a value that is not the template: what stands around data in a print of it counts as the data's.
Origin origin_of(const Value& value) {
  if (const Text* text = value.text()) {
    const auto found = std::find_if(text->from.begin(), text->from.end(), [](Origin each) { return each != 0; });
    return found == text->from.end() ? Origin{0} : *found;
  }
  if (const List* list = value.list()) {
    for (const Value& each : *list) {
      if (const Origin origin = origin_of(each); origin != 0) {
        return origin;
      }
    }
  }
  if (const Dict* dict = value.dict()) {
    for (const auto& [key, item] : dict->items) {
      if (const Origin origin = origin_of(key) != 0 ? origin_of(key) : origin_of(item); origin != 0) {
        return origin;
      }
    }
  }
  return 0;
}

void append_hex(std::string& out, std::uint32_t value, int digits) {
  constexpr std::string_view hex = "0123456789abcdef";
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) {
    out += hex[value >> shift & 15U];
  }
}

/// A text within a print: quoted as Python does.
Text python_quoted(const Text& text) {
  const bool single = text.bytes.find('\'') != std::string::npos && text.bytes.find('"') == std::string::npos;
  const char quote = single ? '"' : '\'';
  Text out;
  const auto put = [&](std::string_view bytes, Origin origin) { out.append(bytes, origin); };
  put(std::string_view(&quote, 1), 0);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text.bytes[i];
    const Origin origin = text.from[i];
    if (c == '\n' || c == '\r' || c == '\t') {
      put(c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t", origin);
    } else if (c == '\\' || c == quote) {
      put("\\", origin);
      put(std::string_view(&c, 1), origin);
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      std::string code = "\\x";
      append_hex(code, static_cast<unsigned char>(c), 2);
      put(code, origin);
    } else {
      put(std::string_view(&c, 1), origin);
    }
  }
  put(std::string_view(&quote, 1), 0);
  return out;
}

/// As repr() of Python.
Text represented(const Value& value) {
  if (const Text* text = value.text()) {
    return python_quoted(*text);
  }
  Text out;
  if (const List* list = value.list()) {
    out.append("[", 0);
    for (std::size_t i = 0; i < list->size(); ++i) {
      out.append(i == 0 ? "" : ", ", 0);
      out.append(represented((*list)[i]));
    }
    out.append("]", 0);
  } else if (const Dict* dict = value.dict()) {
    out.append("{", 0);
    for (std::size_t i = 0; i < dict->items.size(); ++i) {
      out.append(i == 0 ? "" : ", ", 0);
      out.append(represented(dict->items[i].first));
      out.append(": ", 0);
      out.append(represented(dict->items[i].second));
    }
    out.append("}", 0);
  } else {
    return printed(value);
  }
  return out;
}

class JsonPrinter {
 public:
  JsonPrinter(const JsonStyle& style, Origin origin) : style_(style), origin_(origin) {}

  void put(const Value& value, std::int64_t depth) {
    if (const Text* text = value.text()) {
      quoted(*text);
    } else if (const List* list = value.list()) {
      std::vector<std::function<void()>> parts;
      for (const Value& each : *list) {
        parts.emplace_back([this, &each, depth] { put(each, depth + 1); });
      }
      enclosed("[", parts, "]", depth);
    } else if (const Dict* dict = value.dict()) {
      put_dict(*dict, depth);
    } else if (const bool* boolean = value.boolean()) {
      out.append(*boolean ? "true" : "false", origin_);
    } else if (value.is_none()) {
      out.append("null", origin_);
    } else {
      KF_CHECK(value.is_number(), Code::data, "{} has no form in JSON", value.kind());
      out.append(value.real() != nullptr && !std::isfinite(*value.real()) ? not_finite(*value.real()) : printed(value).bytes, origin_);
    }
  }

  Text out;

 private:
  static std::string not_finite(double value) { return std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity"; }

  void put_dict(const Dict& dict, std::int64_t depth) {
    std::vector<const Pair*> order;
    for (const Pair& item : dict.items) {
      order.push_back(&item);
    }
    if (style_.sorted) {
      std::stable_sort(order.begin(), order.end(), [](const Pair* a, const Pair* b) { return compare(a->first, b->first) < 0; });
    }
    std::vector<std::function<void()>> parts;
    for (const Pair* item : order) {
      parts.emplace_back([this, item, depth] {
        quoted(item->first.text() != nullptr ? *item->first.text() : Text(printed(item->first).bytes, origin_));
        out.append(style_.key, origin_);
        put(item->second, depth + 1);
      });
    }
    enclosed("{", parts, "}", depth);
  }

  void enclosed(std::string_view open, const std::vector<std::function<void()>>& parts, std::string_view close, std::int64_t depth) {
    out.append(open, origin_);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      out.append(i == 0 ? std::string_view() : style_.item, origin_);
      new_line(depth + 1);
      parts[i]();
    }
    if (!parts.empty()) {
      new_line(depth);
    }
    out.append(close, origin_);
  }

  void new_line(std::int64_t depth) {
    if (style_.indent >= 0) {
      out.append("\n" + std::string(static_cast<std::size_t>(style_.indent * depth), ' '), origin_);
    }
  }

  void quoted(const Text& text) {
    out.append("\"", origin_);
    const char* const end = text.bytes.data() + text.size();
    for (std::size_t i = 0; i < text.size();) {
      const unicode::Decoded c = unicode::decode(text.bytes.data() + i, end);
      out.append(escaped(c.cp, std::string_view(text.bytes).substr(i, c.size)), text.from[i]);
      i += c.size;
    }
    out.append("\"", origin_);
  }

  std::string escaped(std::uint32_t cp, std::string_view bytes) const {
    constexpr std::string_view letters = "\"\\\n\r\t\b\f";
    constexpr std::string_view escapes = "\"\\nrtbf";
    if (cp < 0x80) {
      if (const std::size_t at = letters.find(static_cast<char>(cp)); at != std::string_view::npos && cp != 0) {
        return std::string("\\") + escapes[at];
      }
    }
    if (cp >= 0x20 && (cp < 0x7f || !style_.ascii) && cp != unicode::kInvalid) {
      return std::string(bytes);
    }
    std::string code = "\\u";
    if (cp >= 0x10000 && cp != unicode::kInvalid) {
      append_hex(code, 0xd800 + ((cp - 0x10000) >> 10), 4);
      code += "\\u";
      append_hex(code, 0xdc00 + ((cp - 0x10000) & 0x3ffU), 4);
    } else {
      append_hex(code, cp == unicode::kInvalid ? 0xfffd : cp, 4);
    }
    return code;
  }

  const JsonStyle& style_;
  Origin origin_;
};

}  // namespace

std::string number_text(double value) {
  if (!std::isfinite(value)) {
    return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
  }
  std::array<char, 64> buffer{};
  const double size = std::abs(value);
  const bool plain = size == 0 || (size >= 1e-4 && size < 1e16);
  const auto format = plain ? std::chars_format::fixed : std::chars_format::scientific;
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, format);
  std::string out(buffer.data(), end);
  return plain && out.find('.') == std::string::npos ? out + ".0" : out;
}

Text printed(const Value& value) {
  if (const Text* text = value.text()) {
    return *text;
  }
  if (const bool* boolean = value.boolean()) {
    return Text(*boolean ? "True" : "False");
  }
  if (const std::int64_t* integer = value.integer()) {
    return Text(std::to_string(*integer));
  }
  if (const double* real = value.real()) {
    return Text(number_text(*real));
  }
  if (value.is_none()) {
    return Text("None");
  }
  if (const Function* function = value.function()) {
    return Text("<function " + function->name + ">");
  }
  return value.is_undefined() ? Text() : represented(value);
}

Text json_text(const Value& value, const JsonStyle& style) {
  JsonPrinter printer(style, origin_of(value));
  printer.put(value, 0);
  return std::move(printer.out);
}

}  // namespace kf::jinja
