#include "data/template/lexer.h"

#include <algorithm>
#include <charconv>

#include "core/error.h"

namespace kf::jinja {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Line ends become \n, and one at the end of the template goes.
std::string plain_lines(std::string_view source) {
  std::string out;
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      i += i + 1 < source.size() && source[i + 1] == '\n' ? 1 : 0;
    } else {
      out += source[i];
    }
  }
  if (out.ends_with('\n')) {
    out.pop_back();
  }
  return out;
}

void append_utf8(std::string& out, std::uint32_t cp) {
  const auto byte = [&](std::uint32_t value) { out += static_cast<char>(value); };
  if (cp < 0x80) {
    byte(cp);
  } else if (cp < 0x800) {
    byte(0xc0U | cp >> 6);
    byte(0x80U | (cp & 0x3fU));
  } else if (cp < 0x10000) {
    byte(0xe0U | cp >> 12);
    byte(0x80U | (cp >> 6 & 0x3fU));
    byte(0x80U | (cp & 0x3fU));
  } else {
    byte(0xf0U | cp >> 18);
    byte(0x80U | (cp >> 12 & 0x3fU));
    byte(0x80U | (cp >> 6 & 0x3fU));
    byte(0x80U | (cp & 0x3fU));
  }
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(plain_lines(source)) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) {
      const std::size_t tag = next_tag();
      put_data(tag);
      if (at_ < source_.size()) {
        read_tag();
      }
    }
    put(Token::Kind::end, "");
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void wrong(const std::string& what) const { fail(Code::config, "line {}: {}", line_, what); }

  void put(Token::Kind kind, std::string text) {
    Token token;
    token.kind = kind;
    token.text = std::move(text);
    token.line = line_;
    tokens_.push_back(std::move(token));
  }

  void advance(std::size_t to) {
    line_ += static_cast<int>(
        std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_), source_.begin() + static_cast<std::ptrdiff_t>(to), '\n'));
    at_ = to;
  }

  std::size_t next_tag() const {
    for (std::size_t at = source_.find('{', at_); at != std::string::npos; at = source_.find('{', at + 1)) {
      const char next = at + 1 < source_.size() ? source_[at + 1] : '\0';
      if (next == '{' || next == '%' || next == '#') {
        return at;
      }
    }
    return source_.size();
  }

  /// Text up to `tag`, without the white space that the tag takes: all of it with a minus, else what stands before a block on its line.
  void put_data(std::size_t tag) {
    std::size_t end = tag;
    if (tag < source_.size()) {
      const char sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
      if (sign == '-') {
        while (end > at_ && is_space(source_[end - 1])) {
          --end;
        }
      } else if (sign != '+' && source_[tag + 1] != '{') {
        std::size_t start = end;
        while (start > at_ && (source_[start - 1] == ' ' || source_[start - 1] == '\t')) {
          --start;
        }
        const bool line_starts = start == at_ ? at_ == 0 || source_[at_ - 1] == '\n' : source_[start - 1] == '\n';
        end = line_starts ? start : end;
      }
    }
    if (end > at_) {
      put(Token::Kind::data, source_.substr(at_, end - at_));
    }
    advance(tag);
  }

  void read_tag() {
    const char kind = source_[at_ + 1];
    if (kind == '#') {
      const std::size_t end = source_.find("#}", at_ + 2);
      if (end == std::string::npos) {
        wrong("a comment, {#, is not closed");
      }
      close(end, '#');
      return;
    }
    put(kind == '{' ? Token::Kind::print_begin : Token::Kind::block_begin, "");
    std::size_t from = at_ + 2;
    from += from < source_.size() && (source_[from] == '-' || source_[from] == '+') ? 1 : 0;
    advance(from);
    const char closing = kind == '{' ? '}' : '%';
    for (int depth = 0;;) {
      while (at_ < source_.size() && is_space(source_[at_])) {
        advance(at_ + 1);
      }
      if (at_ >= source_.size()) {
        wrong(kind == '{' ? "{{ is not closed" : "{% is not closed");
      }
      const std::size_t sign = source_[at_] == '-' || (source_[at_] == '+' && closing == '%') ? 1 : 0;
      if (depth == 0 && source_.compare(at_ + sign, 2, std::string{closing, '}'}) == 0) {
        put(kind == '{' ? Token::Kind::print_end : Token::Kind::block_end, "");
        close(at_ + sign, closing);
        return;
      }
      read_token(depth);
    }
  }

  /// Behind a tag's end at `end`: white space that its minus takes, or the line end behind a block or comment.
  void close(std::size_t end, char closing) {
    const char sign = source_[end - 1];
    std::size_t next = end + 2;
    if (sign == '-') {
      while (next < source_.size() && is_space(source_[next])) {
        ++next;
      }
    } else if (closing != '}' && sign != '+' && next < source_.size() && source_[next] == '\n') {
      ++next;
    }
    advance(next);
  }

  void read_token(int& depth) {
    const char c = source_[at_];
    if (is_letter(c)) {
      std::size_t end = at_;
      while (end < source_.size() && (is_letter(source_[end]) || is_digit(source_[end]))) {
        ++end;
      }
      put(Token::Kind::name, source_.substr(at_, end - at_));
      advance(end);
    } else if (is_digit(c)) {
      read_number();
    } else if (c == '"' || c == '\'') {
      read_text(c);
    } else {
      read_operator(depth);
    }
  }

  void read_number() {
    std::string digits;
    std::size_t end = at_;
    bool real = false;
    for (; end < source_.size(); ++end) {
      const char c = source_[end];
      const bool point = c == '.' && end + 1 < source_.size() && is_digit(source_[end + 1]) && !real;
      const bool exponent = (c == 'e' || c == 'E') && end + 1 < source_.size() && (is_digit(source_[end + 1]) || source_[end + 1] == '-');
      if (!is_digit(c) && c != '_' && !point && !exponent && !(c == '-' && (source_[end - 1] == 'e' || source_[end - 1] == 'E'))) {
        break;
      }
      real = real || point || exponent;
      digits += c == '_' ? "" : std::string(1, c);
    }
    put(real ? Token::Kind::real : Token::Kind::integer, digits);
    Token& token = tokens_.back();
    const char* const last = digits.data() + digits.size();
    const auto result = real ? std::from_chars(digits.data(), last, token.real) : std::from_chars(digits.data(), last, token.integer);
    if (result.ec != std::errc() || result.ptr != last) {
      wrong("the number " + digits + " is not understood");
    }
    advance(end);
  }

  void read_text(char quote) {
    std::string text;
    std::size_t i = at_ + 1;
    for (; i < source_.size() && source_[i] != quote; ++i) {
      if (source_[i] != '\\' || i + 1 >= source_.size()) {
        text += source_[i];
        continue;
      }
      ++i;
      constexpr std::string_view letters = "ntrabfv0";
      constexpr std::string_view values("\n\t\r\a\b\f\v\0", 8);
      if (const std::size_t at = letters.find(source_[i]); at != std::string_view::npos) {
        text += values[at];
      } else if (source_[i] == 'x' || source_[i] == 'u' || source_[i] == 'U') {
        i = read_code(i, text);
      } else if (source_[i] == '\\' || source_[i] == '\'' || source_[i] == '"') {
        text += source_[i];
      } else if (source_[i] != '\n') {
        text += '\\';
        text += source_[i];
      }
    }
    if (i >= source_.size()) {
      wrong("a string is not closed");
    }
    put(Token::Kind::text, std::move(text));
    advance(i + 1);
  }

  /// \xhh, \uhhhh and \Uhhhhhhhh at `letter`; the place of the last digit.
  std::size_t read_code(std::size_t letter, std::string& text) const {
    const std::size_t digits = source_[letter] == 'x' ? 2 : source_[letter] == 'u' ? 4 : 8;
    std::uint32_t cp = 0;
    const char* const begin = source_.data() + letter + 1;
    const char* const end = source_.data() + std::min(source_.size(), letter + 1 + digits);
    if (std::from_chars(begin, end, cp, 16).ptr != begin + digits || cp > 0x10ffff) {
      wrong("an escape in a string has too few digits");
    }
    append_utf8(text, cp);
    return letter + digits;
  }

  void read_operator(int& depth) {
    for (const std::string_view two : {"**", "//", "==", "!=", ">=", "<="}) {
      if (source_.compare(at_, 2, two) == 0) {
        put(Token::Kind::op, std::string(two));
        advance(at_ + 2);
        return;
      }
    }
    const char c = source_[at_];
    if (std::string_view("+-*/%~<>=()[]{}.:|,").find(c) == std::string_view::npos) {
      wrong(format("{} is not understood", kf::quoted(std::string(1, c))));
    }
    depth += c == '(' || c == '[' || c == '{' ? 1 : c == ')' || c == ']' || c == '}' ? -1 : 0;
    if (depth < 0) {
      wrong(format("{} closes nothing", c));
    }
    put(Token::Kind::op, std::string(1, c));
    advance(at_ + 1);
  }

  std::string source_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) { return Lexer(source).run(); }

}  // namespace kf::jinja
