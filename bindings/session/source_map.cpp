#include "bindings/session/source_map.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <utility>

#include "core/text.h"

namespace kf::lua {
namespace {

struct Token {
  enum class Kind { name, string, number, symbol, end };
  Kind kind = Kind::end;
  std::string text;
  SourceMap::Place place;
  std::string_view written = {};  // as it stands in the text
};

bool is_name_start(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool is_name_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// Lua's tokens, as far as tables need them. Never fails: the text has been compiled already.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  Token next() {
    skip_blank();
    const std::size_t start = at_;
    Token token = read();
    token.written = text_.substr(start, at_ - start);
    return token;
  }

 private:
  Token read() {
    Token token;
    token.place = place_;
    if (at_ >= text_.size()) {
      return token;
    }
    const char c = text_[at_];
    const std::size_t start = at_;
    if (is_name_start(c)) {
      token.kind = Token::Kind::name;
      while (is_name_char(peek())) {
        step();
      }
    } else if (std::isdigit(static_cast<unsigned char>(c))) {
      token.kind = Token::Kind::number;
      while (is_name_char(peek()) || peek() == '.') {
        step();
      }
    } else if (c == '"' || c == '\'') {
      token.kind = Token::Kind::string;
      token.text = quoted_text(c);
      return token;
    } else if (long_level() >= 0) {
      token.kind = Token::Kind::string;
      token.text = long_text();
      return token;
    } else {
      token.kind = Token::Kind::symbol;
      step();
      if (std::string_view("=<>~").find(c) != std::string_view::npos && peek() == '=') {
        step();
      }
    }
    token.text = std::string(text_.substr(start, at_ - start));
    return token;
  }

  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  void step() {
    if (at_ >= text_.size()) {
      return;
    }
    if (text_[at_++] == '\n') {
      ++place_.line;
      place_.column = 1;
    } else {
      ++place_.column;
    }
  }

  void skip_blank() {
    for (;;) {
      if (std::isspace(static_cast<unsigned char>(peek()))) {
        step();
      } else if (peek() == '-' && peek(1) == '-') {
        step();
        step();
        if (long_level() >= 0) {
          long_text();
        } else {
          while (at_ < text_.size() && peek() != '\n') {
            step();
          }
        }
      } else if (peek() == '#' && at_ == 0) {
        while (at_ < text_.size() && peek() != '\n') {
          step();
        }
      } else {
        return;
      }
    }
  }

  /// The number of `=` of a long bracket `[==[` here, or -1.
  int long_level() const {
    if (peek() != '[') {
      return -1;
    }
    std::size_t ahead = 1;
    while (peek(ahead) == '=') {
      ++ahead;
    }
    return peek(ahead) == '[' ? static_cast<int>(ahead) - 1 : -1;
  }

  std::string long_text() {
    const std::string close = "]" + std::string(static_cast<std::size_t>(long_level()), '=') + "]";
    const std::size_t start = at_ + close.size();
    const std::size_t end = std::min(text_.find(close, start), text_.size());
    while (at_ < end + close.size() && at_ < text_.size()) {
      step();
    }
    return std::string(text_.substr(std::min(start, end), end - std::min(start, end)));
  }

  std::string quoted_text(char quote) {
    std::string out;
    step();
    while (at_ < text_.size() && peek() != quote) {
      if (peek() == '\\') {
        step();
      }
      out += peek();
      step();
    }
    step();
    return out;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  SourceMap::Place place_{1, 1};
};

bool is_symbol(const Token& token, std::string_view text) { return token.kind == Token::Kind::symbol && token.text == text; }
bool is_word(const Token& token, std::string_view text) { return token.kind == Token::Kind::name && token.text == text; }

/// Reads the tokens once, with a stack of what is open.
class Scanner {
 public:
  Scanner(std::string_view text, std::vector<SourceMap::Entry>& entries, int& return_line) : entries_(entries), return_line_(return_line) {
    Lexer lexer(text);
    do {
      tokens_.push_back(lexer.next());
    } while (tokens_.back().kind != Token::Kind::end);
  }

  void run() {
    while (at(0).kind != Token::Kind::end) {
      const bool in_table = !open_.empty() && open_.back().kind == Open::Kind::table;
      if (in_table && open_.back().at_entry) {
        entry();
      } else if (!in_table) {
        assignment();
      }
      structure();
    }
  }

 private:
  /// A bracket or block that has not been closed yet.
  struct Open {
    enum class Kind { table, bracket, block };
    Kind kind = Kind::block;
    std::vector<std::string> path;  // table: of itself
    int root_line = 0;
    int items = 0;
    bool at_entry = false;
    std::vector<std::string> value_path;  // table: of the entry that is being read
  };

  const Token& at(std::size_t ahead) const { return tokens_[std::min(next_ + ahead, tokens_.size() - 1)]; }

  void add(std::vector<std::string> path, const Token& key, const Token& value, int root_line) {
    entries_.push_back({std::move(path), key.place, value.place, root_line});
  }

  /// At the start of a table's entry: `name =`, `["name"] =` or an item of a list.
  void entry() {
    Open& table = open_.back();
    table.at_entry = false;
    std::size_t value = 0;
    std::string key;
    if (is_symbol(at(0), "}")) {
      return;
    }
    if (at(0).kind == Token::Kind::name && is_symbol(at(1), "=")) {
      key = at(0).text;
      value = 2;
    } else if (is_symbol(at(0), "[") && at(1).kind == Token::Kind::string && is_symbol(at(2), "]") && is_symbol(at(3), "=")) {
      key = at(1).text;
      value = 4;
    } else {
      key = to_text(++table.items);
    }
    table.value_path = table.path;
    table.value_path.push_back(key);
    add(table.value_path, at(0), at(value), table.root_line);
    next_ += value;
  }

  /// In a block: `job.optimizer.lr = ...`; the variable's own name is no part of the path.
  void assignment() {
    if (at(0).kind != Token::Kind::name || (next_ > 0 && (is_symbol(tokens_[next_ - 1], ".") || is_symbol(tokens_[next_ - 1], ":")))) {
      return;
    }
    std::vector<std::string> path;
    std::size_t i = 1;
    while (is_symbol(at(i), ".") && at(i + 1).kind == Token::Kind::name) {
      path.push_back(at(i + 1).text);
      i += 2;
    }
    if (path.empty() || !is_symbol(at(i), "=")) {
      return;
    }
    add(path, at(i - 1), at(i + 1), at(0).place.line);
    if (is_symbol(at(i + 1), "{")) {
      assigned_path_ = path;
      assigned_line_ = at(0).place.line;
      next_ += i + 1;
    }
  }

  /// Opens and closes brackets and blocks, then moves on.
  void structure() {
    const Token& token = at(0);
    Open* top = open_.empty() ? nullptr : &open_.back();
    if (is_symbol(token, "{")) {
      open_table(token, top);
    } else if (is_symbol(token, "(") || is_symbol(token, "[")) {
      open_.push_back({Open::Kind::bracket, {}, 0, 0, false, {}});
    } else if (is_word(token, "function") || is_word(token, "if") || is_word(token, "do") || is_word(token, "repeat")) {
      open_.push_back({Open::Kind::block, {}, 0, 0, false, {}});
    } else if (is_symbol(token, "}") || is_symbol(token, ")") || is_symbol(token, "]") || is_word(token, "end") ||
               is_word(token, "until")) {
      if (top) {
        open_.pop_back();
      }
    } else if (top && top->kind == Open::Kind::table && (is_symbol(token, ",") || is_symbol(token, ";"))) {
      top->at_entry = true;
    } else if (!top && is_word(token, "return")) {
      return_line_ = token.place.line;
    }
    ++next_;
  }

  void open_table(const Token& token, const Open* top) {
    Open table{Open::Kind::table, {}, token.place.line, 0, true, {}};
    if (top && top->kind == Open::Kind::table) {
      table.path = top->value_path;
      table.root_line = top->root_line;
    } else if (!assigned_path_.empty()) {
      table.path = std::exchange(assigned_path_, {});
      table.root_line = assigned_line_;
    }
    open_.push_back(std::move(table));
  }

  std::vector<Token> tokens_;
  std::size_t next_ = 0;
  std::vector<Open> open_;
  std::vector<std::string> assigned_path_;
  int assigned_line_ = 0;
  std::vector<SourceMap::Entry>& entries_;
  int& return_line_;
};

}  // namespace

SourceMap::SourceMap(std::string_view text) : lines_(split(text, '\n')) { Scanner(text, entries_, return_line_).run(); }

const SourceMap::Entry* SourceMap::find(const std::vector<std::string>& path, int line) const {
  // Of two equally near ones the one before the line, where tables are made; then the later, which is what the script ended with.
  const auto distance = [line](const Entry& entry) { return 2 * std::abs(entry.root_line - line) + (entry.root_line > line ? 1 : 0); };
  const Entry* best = nullptr;
  for (const Entry& entry : entries_) {
    if (entry.path == path && (!best || distance(entry) <= distance(*best))) {
      best = &entry;
    }
  }
  return best;
}

CodeText code_text(std::string_view text) {
  CodeText out;
  Lexer lexer(text);
  int depth = 0;  // blocks that are open, counted from a function on
  for (Token token = lexer.next(); token.kind != Token::Kind::end; token = lexer.next()) {
    const bool opens =
        is_word(token, "function") || (depth > 0 && (is_word(token, "if") || is_word(token, "do") || is_word(token, "repeat")));
    depth += opens ? 1 : 0;
    (depth > 0 ? out.functions : out.rest).append(token.written).push_back('\n');
    depth -= depth > 0 && (is_word(token, "end") || is_word(token, "until")) ? 1 : 0;
  }
  return out;
}

std::string SourceMap::line(int number) const {
  if (number < 1 || static_cast<std::size_t>(number) > lines_.size()) {
    return "";
  }
  std::string text = lines_[static_cast<std::size_t>(number) - 1];
  if (text.ends_with('\r')) {
    text.pop_back();
  }
  return text;
}

}  // namespace kf::lua
