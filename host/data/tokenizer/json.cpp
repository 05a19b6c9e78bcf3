#include "data/tokenizer/json.h"

#include <algorithm>
#include <charconv>

#include "core/error.h"
#include "core/log.h"
#include "data/tokenizer/unicode.h"

namespace kf::json {
namespace {

constexpr int kMaxDepth = 100;

class Parser {
 public:
  Parser(std::string_view text, const std::string& name) : p_(text.data()), begin_(text.data()), end_(p_ + text.size()), name_(name) {}

  Value whole() {
    if (text().starts_with("\xef\xbb\xbf")) {
      p_ += 3;
    }
    Value value;
    parse(value, 0);
    blanks();
    if (p_ != end_) {
      wrong("nothing more");
    }
    return value;
  }
  std::string only_string() {
    blanks();
    if (p_ == end_ || *p_ != '"') {
      wrong("a string in double quotes");
    }
    std::string out = string();
    blanks();
    if (p_ != end_) {
      wrong("nothing more");
    }
    return out;
  }

 private:
  std::string_view text() const { return {p_, static_cast<std::size_t>(end_ - p_)}; }

  [[noreturn]] void wrong(const char* wanted) const {
    const std::string_view before(begin_, static_cast<std::size_t>(p_ - begin_));
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const std::size_t start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
    fail(Code::data, "{}: invalid JSON at line {}, column {}: expected {}{}", name_, line, before.size() - start + 1, wanted,
         p_ == end_ ? ", and the text ends here" : "");
  }
  void blanks() {
    while (p_ < end_ && (*p_ == ' ' || *p_ == '\t' || *p_ == '\n' || *p_ == '\r')) {
      ++p_;
    }
  }
  bool take(char c) {
    blanks();
    if (p_ < end_ && *p_ == c) {
      ++p_;
      return true;
    }
    return false;
  }

  void parse(Value& out, int depth) {
    blanks();
    if (p_ == end_ || depth > kMaxDepth) {
      wrong(depth > kMaxDepth ? "less nesting (100 levels at most)" : "a value");
    }
    if (*p_ == '"') {
      out.type = Value::Type::string;
      out.text = string();
    } else if (*p_ == '{') {
      object(out, depth);
    } else if (*p_ == '[') {
      array(out, depth);
    } else if (*p_ == '-' || (*p_ >= '0' && *p_ <= '9')) {
      number(out);
    } else {
      word(out);
    }
  }
  void word(Value& out) {
    const auto is = [&](std::string_view w) { return text().starts_with(w) ? (p_ += w.size(), true) : false; };
    if (is("true") || is("false")) {
      out.type = Value::Type::boolean;
      out.boolean = p_[-1] == 'e' && p_[-2] == 'u';
    } else if (!is("null")) {
      wrong("a value");
    }
  }
  void number(Value& out) {
    const char* start = p_;
    const auto digits = [&] {
      const char* first = p_;
      while (p_ < end_ && *p_ >= '0' && *p_ <= '9') {
        ++p_;
      }
      return p_ != first;
    };
    p_ += *p_ == '-' ? 1 : 0;
    const char* first = p_;
    bool good = digits() && (*first != '0' || p_ - first == 1);
    out.integral = true;
    if (good && p_ < end_ && *p_ == '.') {
      ++p_;
      out.integral = false;
      good = digits();
    }
    if (good && p_ < end_ && (*p_ == 'e' || *p_ == 'E')) {
      ++p_;
      out.integral = false;
      p_ += p_ < end_ && (*p_ == '+' || *p_ == '-') ? 1 : 0;
      good = digits();
    }
    if (!good) {
      wrong("a number");
    }
    out.type = Value::Type::number;
    std::from_chars(start, p_, out.number);
  }
  void object(Value& out, int depth) {
    out.type = Value::Type::object;
    ++p_;
    if (take('}')) {
      return;
    }
    do {
      blanks();
      if (p_ == end_ || *p_ != '"') {
        wrong("a name in double quotes");
      }
      out.members.push_back({string(), Value()});
      if (!take(':')) {
        wrong("':'");
      }
      parse(out.members.back().second, depth + 1);
    } while (take(','));
    if (!take('}')) {
      wrong("',' or '}'");
    }
  }
  void array(Value& out, int depth) {
    out.type = Value::Type::array;
    ++p_;
    if (take(']')) {
      return;
    }
    do {
      out.items.emplace_back();
      parse(out.items.back(), depth + 1);
    } while (take(','));
    if (!take(']')) {
      wrong("',' or ']'");
    }
  }

  std::string string() {
    std::string out;
    ++p_;
    for (;;) {
      const char* start = p_;
      while (p_ < end_ && *p_ != '"' && *p_ != '\\' && static_cast<unsigned char>(*p_) >= 0x20) {
        ++p_;
      }
      out.append(start, p_);
      if (p_ == end_ || static_cast<unsigned char>(*p_) < 0x20) {
        wrong("the end of a string (control characters are written as \\u00XX)");
      }
      if (*p_++ == '"') {
        return out;
      }
      escape(out);
    }
  }
  void escape(std::string& out) {
    static constexpr std::string_view names = "\"\\/bfnrt";
    static constexpr std::string_view meant = "\"\\/\b\f\n\r\t";
    const char c = p_ < end_ ? *p_ : '\0';
    if (c == 'u') {
      ++p_;
      unicode::append(out, code_point());
    } else if (const std::size_t at = names.find(c); c != '\0' && at != std::string_view::npos) {
      out += meant[at];
      ++p_;
    } else {
      wrong("one of \" \\ / b f n r t u after a backslash");
    }
  }
  std::uint32_t four_digits() {
    std::uint32_t value = 0;
    const auto [stop, error] = std::from_chars(p_, std::min(p_ + 4, end_), value, 16);
    if (error != std::errc() || stop != p_ + 4) {
      wrong("four hexadecimal digits");
    }
    p_ += 4;
    return value;
  }
  std::uint32_t code_point() {
    const std::uint32_t first = four_digits();
    if (first >= 0xd800 && first < 0xdc00 && text().starts_with("\\u")) {
      const char* back = p_;
      p_ += 2;
      const std::uint32_t second = four_digits();
      if (second >= 0xdc00 && second < 0xe000) {
        return 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
      }
      p_ = back;
    }
    return first >= 0xd800 && first < 0xe000 ? 0xfffd : first;
  }

  const char* p_;
  const char* begin_;
  const char* end_;
  const std::string& name_;
};

}  // namespace

const Value* Value::find(std::string_view name) const {
  const auto found = std::find_if(members.rbegin(), members.rend(), [&](const Member& member) { return member.first == name; });
  return found == members.rend() ? nullptr : &found->second;
}

const char* type_name(Value::Type type) {
  constexpr const char* names[] = {"null", "true or false", "a number", "a string", "an array", "an object"};
  return names[static_cast<int>(type)];
}

Value parse(std::string_view text, const std::string& name) { return Parser(text, name).whole(); }
std::string parse_string(std::string_view text, const std::string& name) { return Parser(text, name).only_string(); }

std::string quote(std::string_view text) {
  std::string storage;
  text = unicode::valid(text, storage);
  std::string out = "\"";
  const char* end = text.data() + text.size();
  for (const char* p = text.data(); p < end;) {
    const unicode::Decoded c = unicode::decode(p, end);
    // What some readers of lines take for the end of a line is escaped, too.
    const bool escaped = c.cp < 0x20 || (c.cp >= 0x7f && c.cp < 0xa0) || c.cp == 0x2028 || c.cp == 0x2029;
    if (c.cp == '"' || c.cp == '\\') {
      out += '\\';
      out += *p;
    } else if (c.cp == '\n' || c.cp == '\t' || c.cp == '\r') {
      out += c.cp == '\n' ? "\\n" : c.cp == '\t' ? "\\t" : "\\r";
    } else if (escaped) {
      out += "\\u";
      for (int shift = 12; shift >= 0; shift -= 4) {
        out += "0123456789abcdef"[c.cp >> shift & 15];
      }
    } else {
      out.append(p, c.size);
    }
    p += c.size;
  }
  return out + '"';
}

std::string Place::path(std::string_view member) const {
  return path_ + (path_.ends_with(": ") || path_.empty() ? "" : ".") + std::string(member);
}

bool Place::has(std::string_view name) const {
  const Value* found = value_->find(name);
  return found != nullptr && !found->is_null();
}

Place Place::at(std::string_view name) const {
  if (value_->type != Value::Type::object) {
    wrong("an object");
  }
  const Value* found = value_->find(name);
  KF_CHECK(found != nullptr, Code::data, "{} is missing", path(name));
  return {*found, path(name)};
}

Place Place::at(std::size_t index) const {
  const std::vector<Value>& all = as_array();
  KF_CHECK(index < all.size(), Code::data, "{} has {} entries, and entry {} is needed", path_, all.size(), index);
  return {all[index], path_ + "[" + std::to_string(index) + "]"};
}

std::size_t Place::size() const { return as_array().size(); }

void Place::wrong(std::string_view wanted) const {
  std::string shown = type_name(value_->type);
  if (value_->type == Value::Type::string) {
    shown = kf::quoted(value_->text.substr(0, 80));
  } else if (value_->type == Value::Type::number) {
    shown = to_text(value_->number);
  } else if (value_->type == Value::Type::boolean) {
    shown = to_text(value_->boolean);
  }
  fail(Code::data, "{} must be {}, and is {}", path_, wanted, shown);
}

const std::string& Place::as_string() const {
  if (value_->type != Value::Type::string) {
    wrong("a string");
  }
  return value_->text;
}

bool Place::as_bool() const {
  if (value_->type != Value::Type::boolean) {
    wrong("true or false");
  }
  return value_->boolean;
}

double Place::as_number() const {
  if (value_->type != Value::Type::number) {
    wrong("a number");
  }
  return value_->number;
}

std::int64_t Place::as_integer(std::int64_t low, std::int64_t high) const {
  const bool good = value_->type == Value::Type::number && value_->integral && value_->number >= static_cast<double>(low) &&
                    value_->number <= static_cast<double>(high);
  if (!good) {
    wrong(format("an integer from {} to {}", low, high));
  }
  return static_cast<std::int64_t>(value_->number);
}

const std::vector<Value>& Place::as_array() const {
  if (value_->type != Value::Type::array) {
    wrong("an array");
  }
  return value_->items;
}

const std::vector<Value::Member>& Place::as_object() const {
  if (value_->type != Value::Type::object) {
    wrong("an object");
  }
  return value_->members;
}

std::string Place::string_or(std::string_view name, const std::string& fallback) const {
  return has(name) ? at(name).as_string() : fallback;
}

bool Place::bool_or(std::string_view name, bool fallback) const { return has(name) ? at(name).as_bool() : fallback; }

void Place::warn_unknown(std::initializer_list<std::string_view> known) const {
  for (const Value::Member& member : as_object()) {
    if (std::find(known.begin(), known.end(), member.first) == known.end()) {
      log::warn("{} is not known and has no effect", path(member.first));
    }
  }
}

}  // namespace kf::json
