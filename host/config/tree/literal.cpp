#include "config/tree/literal.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <string>

#include "core/ascii.h"
#include "core/text.h"

namespace kf::config {
namespace {

constexpr int kMaxDepth = 32;

/// Digits with single underscores between them, as TOML and Python allow; nothing when one stands elsewhere.
std::optional<std::string> without_underscores(std::string_view text) {
  std::string out;
  const auto alphanumeric = [](char c) { return is_alnum(c); };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
    } else if (i == 0 || i + 1 == text.size() || !alphanumeric(text[i - 1]) || !alphanumeric(text[i + 1])) {
      return std::nullopt;
    }
  }
  return out;
}

std::string_view without_sign(std::string_view text, bool& negative) {
  negative = text.starts_with('-');
  return negative || text.starts_with('+') ? text.substr(1) : text;
}

void append_utf8(std::string& out, unsigned long code) {
  const auto put = [&out](unsigned long byte) { out += static_cast<char>(static_cast<unsigned char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | code >> 6);
    put(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    put(0xe0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  } else {
    put(0xf0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3f));
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  }
}

/// A recursive-descent reader of literals. Every function leaves `at_` behind what it read and returns nothing on a fault.
class Parser {
 public:
  Parser(std::string_view text, const Origin& origin) : text_(text), origin_(origin) {}

  /// A whole text that is one list or table.
  std::optional<Node> bracketed() {
    skip_space();
    std::optional<Node> out = value(0);
    skip_space();
    return at_ == text_.size() ? out : std::nullopt;
  }

  /// A whole text that is one quoted string.
  std::optional<std::string> whole_string() {
    std::optional<std::string> out = quoted_string();
    return at_ == text_.size() ? out : std::nullopt;
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(char c) {
    if (peek() != c || at_ >= text_.size()) {
      return false;
    }
    ++at_;
    return true;
  }
  void skip_space() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) {
      ++at_;
    }
  }

  Node loose(Node::Value value, std::size_t from) const {
    Node out(std::move(value), origin_);
    out.origin.text = std::string(text_.substr(from, at_ - from));
    out.loose = true;
    return out;
  }

  std::optional<Node> value(int depth) {
    const std::size_t from = at_;
    if (depth > kMaxDepth) {
      return std::nullopt;
    }
    if (peek() == '[' || peek() == '(') {
      std::optional<Array> items = list(depth, peek() == '[' ? ']' : ')');
      return items ? std::optional(loose(std::move(*items), from)) : std::nullopt;
    }
    if (peek() == '{') {
      std::optional<Table> entries = table(depth);
      return entries ? std::optional(loose(std::move(*entries), from)) : std::nullopt;
    }
    std::optional<std::string> text = peek() == '"' || peek() == '\'' ? quoted_string() : bare();
    return text ? std::optional(loose(std::move(*text), from)) : std::nullopt;
  }

  std::optional<Array> list(int depth, char close) {
    Array out;
    ++at_;
    for (skip_space(); !take(close); skip_space()) {
      std::optional<Node> item = value(depth + 1);
      if (!item) {
        return std::nullopt;
      }
      out.push_back(std::move(*item));
      skip_space();
      if (!take(',') && peek() != close) {
        return std::nullopt;
      }
    }
    return out;
  }

  std::optional<Table> table(int depth) {
    Table out;
    ++at_;
    for (skip_space(); !take('}'); skip_space()) {
      std::optional<std::string> key = peek() == '"' || peek() == '\'' ? quoted_string() : bare();
      skip_space();
      if (!key || out.find(*key) != nullptr || !(take(':') || take('='))) {
        return std::nullopt;
      }
      skip_space();
      std::optional<Node> item = value(depth + 1);
      if (!item) {
        return std::nullopt;
      }
      item->key_origin = origin_;
      out[*key] = std::move(*item);
      skip_space();
      if (!take(',') && peek() != '}') {
        return std::nullopt;
      }
    }
    return out;
  }

  std::optional<std::string> bare() {
    const std::size_t from = at_;
    const auto word = [](char c) { return is_alnum(c) || std::string_view("_+-./*").find(c) != std::string_view::npos; };
    while (at_ < text_.size() && word(text_[at_])) {
      ++at_;
    }
    return at_ > from ? std::optional(std::string(text_.substr(from, at_ - from))) : std::nullopt;
  }

  std::optional<std::string> quoted_string() {
    const char quote = peek();
    if (!take('"') && !take('\'')) {
      return std::nullopt;
    }
    std::string out;
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] == '\\' && (quote == '"' || next_is(quote) || next_is('\\'))) {
        if (!escape(out)) {
          return std::nullopt;
        }
      } else {
        out += text_[at_++];
      }
    }
    return take(quote) ? std::optional(out) : std::nullopt;
  }

  bool next_is(char c) const { return at_ + 1 < text_.size() && text_[at_ + 1] == c; }

  bool escape(std::string& out) {
    ++at_;
    if (at_ >= text_.size()) {
      return false;
    }
    const char c = text_[at_++];
    constexpr std::string_view from = "btnfre0'\"\\/";
    constexpr std::string_view to("\b\t\n\f\r\x1b\0'\"\\/", 11);
    if (const std::size_t index = from.find(c); index != std::string_view::npos) {
      out += to[index];
      return true;
    }
    return (c == 'u' && code_point(out, 4)) || (c == 'U' && code_point(out, 8)) || (c == 'x' && code_point(out, 2));
  }

  bool code_point(std::string& out, std::size_t digits) {
    const std::string_view hex = text_.substr(at_, digits);
    unsigned long code = 0;
    const auto [end, error] = std::from_chars(hex.data(), hex.data() + hex.size(), code, 16);
    if (hex.size() != digits || error != std::errc() || end != hex.data() + digits || code > 0x10ffff ||
        (code >= 0xd800 && code < 0xe000)) {
      return false;
    }
    at_ += digits;
    append_utf8(out, code);
    return true;
  }

  std::string_view text_;
  Origin origin_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<std::int64_t> parse_int(std::string_view text) {
  bool negative = false;
  const std::optional<std::string> digits = without_underscores(without_sign(text, negative));
  if (!digits || digits->empty()) {
    return std::nullopt;
  }
  std::string_view rest = *digits;
  int base = 10;
  for (const auto& [prefix, value] : {std::pair{"0x", 16}, std::pair{"0o", 8}, std::pair{"0b", 2}}) {
    if (lower(rest.substr(0, 2)) == prefix) {
      base = value;
      rest.remove_prefix(2);
      break;
    }
  }
  std::uint64_t magnitude = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), magnitude, base);
  constexpr auto limit = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (error != std::errc() || end != rest.data() + rest.size() || magnitude > limit + (negative ? 1 : 0)) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(negative ? 0 - magnitude : magnitude);
}

std::optional<double> parse_real(std::string_view text) {
  if (const std::optional<std::int64_t> integer = parse_int(text); integer && *integer != 0) {
    return static_cast<double>(*integer);
  }
  bool negative = false;
  const std::optional<std::string> digits = without_underscores(without_sign(text, negative));
  if (!digits || digits->empty() || digits->front() == '-') {
    return std::nullopt;
  }
  double out = 0;
  const auto [end, error] = std::from_chars(digits->data(), digits->data() + digits->size(), out);
  if (error != std::errc() || end != digits->data() + digits->size()) {
    return std::nullopt;  // out of range, too: 1e999 is a typo rather than inf
  }
  return negative ? -out : out;
}

bool is_past_int(std::string_view text) {
  bool negative = false;
  const std::optional<std::string> digits = without_underscores(without_sign(text, negative));
  return digits && !digits->empty() && digits->find_first_not_of("0123456789") == std::string::npos && !parse_int(text);
}

bool is_past_real(std::string_view text) {
  bool negative = false;
  const std::optional<std::string> digits = without_underscores(without_sign(text, negative));
  double ignored = 0;
  if (!digits || digits->empty() || digits->front() == '-') {
    return false;
  }
  const auto [end, error] = std::from_chars(digits->data(), digits->data() + digits->size(), ignored);
  return error == std::errc::result_out_of_range && end == digits->data() + digits->size();
}

std::optional<bool> parse_bool(std::string_view text) {
  constexpr std::array<std::string_view, 6> yes{"true", "yes", "on", "y", "1", "t"};
  constexpr std::array<std::string_view, 6> no{"false", "no", "off", "n", "0", "f"};
  const std::string word = lower(text);
  if (std::find(yes.begin(), yes.end(), word) != yes.end()) {
    return true;
  }
  return std::find(no.begin(), no.end(), word) != no.end() ? std::optional(false) : std::nullopt;
}

Node parse_value(std::string_view text, const Origin& origin) {
  Node out(std::string(text), origin);
  const std::string_view inner = trim(text);
  if (inner.starts_with('[') || inner.starts_with('(') || inner.starts_with('{')) {
    if (std::optional<Node> literal = Parser(inner, origin).bracketed()) {
      out = std::move(*literal);
    }
  } else if (std::optional<std::string> string = Parser(inner, origin).whole_string()) {
    out.value = std::move(*string);
  }
  out.origin.text = std::string(text);
  out.loose = true;
  return out;
}

std::optional<Array> parse_bare_list(std::string_view text, const Origin& origin) {
  std::optional<Node> list = Parser("[" + std::string(text) + "]", origin).bracketed();
  return list && list->array() != nullptr ? std::optional(std::move(*list->array())) : std::nullopt;
}

}  // namespace kf::config
