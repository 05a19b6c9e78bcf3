#include "data/template/parser.h"

#include <algorithm>

#include "core/error.h"
#include "data/template/functions.h"
#include "data/template/lexer.h"

namespace kf::jinja {
namespace {

using Kind = Token::Kind;

constexpr int kDeepest = 100;  // nesting of expressions and blocks

class Parser {
 public:
  explicit Parser(std::string_view source) : tokens_(tokenize(source)) {}

  Parsed run() {
    Parsed out;
    out.block = parse_block({});
    out.generation = generation_;
    return out;
  }

 private:
  // Tokens.
  const Token& now() const { return tokens_[at_]; }
  const Token& take() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  bool takes(std::string_view word) {
    const bool is = now().is(word);
    at_ += is ? 1 : 0;
    return is;
  }
  [[noreturn]] void wrong(const std::string& what) const { fail(Code::config, "line {}: {}", now().line, what); }
  std::string seen() const {
    switch (now().kind) {
      case Kind::end: return "the end of the template";
      case Kind::block_end: return "%}";
      case Kind::print_end: return "}}";
      case Kind::data: return "text";
      default: return kf::quoted(now().text);
    }
  }
  void expect(std::string_view word) {
    if (!takes(word)) {
      wrong(format("{} expected, found {}", word, seen()));
    }
  }
  void expect(Kind kind, const char* what) {
    if (now().kind != kind) {
      wrong(format("{} expected, found {}", what, seen()));
    }
    take();
  }
  std::string expect_name() {
    if (now().kind != Kind::name) {
      wrong(format("a name expected, found {}", seen()));
    }
    return take().text;
  }

  struct Deeper {
    explicit Deeper(Parser& parser) : parser_(parser) {
      if (++parser_.depth_ > kDeepest) {
        parser_.wrong(format("nested more than {} deep", kDeepest));
      }
    }
    ~Deeper() { --parser_.depth_; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;
    Parser& parser_;
  };

  // Statements.
  std::unique_ptr<Statement> make(Statement::Kind kind) const {
    auto out = std::make_unique<Statement>();
    out->kind = kind;
    out->line = now().line;
    return out;
  }

  /// Up to a tag whose word is in `ends`, which stays; without any, up to the end of the template.
  Block parse_block(const std::vector<std::string_view>& ends) {
    const Deeper deeper(*this);
    Block out;
    for (;;) {
      if (now().kind == Kind::end) {
        if (!ends.empty()) {
          wrong(format("the template ends before {% {} %}", ends.back()));
        }
        return out;
      }
      if (now().kind == Kind::data) {
        out.push_back(make(Statement::Kind::data));
        out.back()->text = take().text;
      } else if (now().kind == Kind::print_begin) {
        take();
        out.push_back(make(Statement::Kind::print));
        out.back()->expr = parse_tuple();
        expect(Kind::print_end, "}}");
      } else {
        const Token& word = tokens_[std::min(at_ + 1, tokens_.size() - 1)];
        if (word.kind == Kind::name && std::find(ends.begin(), ends.end(), word.text) != ends.end()) {
          return out;
        }
        take();
        out.push_back(parse_tag());
      }
    }
  }

  /// {% word %} behind a block.
  void close(std::string_view word) {
    expect(Kind::block_begin, "{%");
    expect(word);
    expect(Kind::block_end, "%}");
  }

  std::unique_ptr<Statement> parse_tag() {
    const int line = now().line;
    const std::string word = expect_name();
    std::unique_ptr<Statement> out;
    if (word == "if") {
      out = parse_if();
    } else if (word == "for") {
      out = parse_for();
    } else if (word == "set") {
      out = parse_set();
    } else if (word == "macro") {
      out = parse_macro();
    } else if (word == "call") {
      out = parse_enclosed(Statement::Kind::call_block, "endcall");
    } else if (word == "filter") {
      out = parse_enclosed(Statement::Kind::filter_block, "endfilter");
    } else if (word == "generation") {
      generation_ = true;
      out = parse_enclosed(Statement::Kind::generation, "endgeneration");
    } else if (word == "break" || word == "continue") {
      out = make(word == "break" ? Statement::Kind::leave : Statement::Kind::skip);
      if (loops_ == 0) {
        wrong(format("{% {} %} outside of a loop", word));
      }
      expect(Kind::block_end, "%}");
    } else {
      wrong(format("{% {} %} is not known here; there are if, for, set, macro, call, filter, generation, break, continue", word));
    }
    out->line = line;
    return out;
  }

  std::unique_ptr<Statement> parse_if() {
    auto out = make(Statement::Kind::condition);
    out->expr = parse_expression();
    expect(Kind::block_end, "%}");
    out->body = parse_block({"elif", "else", "endif"});
    expect(Kind::block_begin, "{%");
    if (takes("elif")) {
      out->otherwise.push_back(parse_if());
    } else if (takes("else")) {
      expect(Kind::block_end, "%}");
      out->otherwise = parse_block({"endif"});
      close("endif");
    } else {
      expect("endif");
      expect(Kind::block_end, "%}");
    }
    return out;
  }

  std::vector<std::string> parse_targets() {
    const bool bracket = takes("(");
    std::vector<std::string> names{expect_name()};
    while (takes(",")) {
      names.push_back(expect_name());
    }
    if (bracket) {
      expect(")");
    }
    return names;
  }

  std::unique_ptr<Statement> parse_for() {
    auto out = make(Statement::Kind::loop);
    out->names = parse_targets();
    expect("in");
    out->expr = parse_or();
    if (now().is(",")) {
      out->expr = parse_rest_of_list(std::move(out->expr));
    }
    if (takes("if")) {
      out->condition = parse_expression();
    }
    if (now().is("recursive")) {
      wrong("recursive loops are not known here");
    }
    expect(Kind::block_end, "%}");
    ++loops_;
    out->body = parse_block({"else", "endfor"});
    --loops_;
    expect(Kind::block_begin, "{%");
    if (takes("else")) {
      expect(Kind::block_end, "%}");
      out->otherwise = parse_block({"endfor"});
      close("endfor");
    } else {
      expect("endfor");
      expect(Kind::block_end, "%}");
    }
    return out;
  }

  std::unique_ptr<Statement> parse_set() {
    auto out = make(Statement::Kind::set);
    out->names = parse_targets();
    if (takes(".")) {
      out->names.back() += "." + expect_name();
    }
    if (takes("=")) {
      out->expr = parse_tuple();
      expect(Kind::block_end, "%}");
      return out;
    }
    out->kind = Statement::Kind::set_block;
    if (now().is("|")) {
      out->expr = parse_filters(nullptr);
    }
    expect(Kind::block_end, "%}");
    out->body = parse_block({"endset"});
    close("endset");
    return out;
  }

  std::unique_ptr<Statement> parse_macro() {
    auto out = make(Statement::Kind::macro);
    out->text = expect_name();
    expect("(");
    while (!takes(")")) {
      out->names.push_back(expect_name());
      if (takes("=")) {
        out->defaults.push_back(parse_expression());
      } else if (!out->defaults.empty()) {
        wrong("an argument without a default behind one that has one");
      }
      if (!now().is(")")) {
        expect(",");
      }
    }
    expect(Kind::block_end, "%}");
    const int loops = std::exchange(loops_, 0);
    out->body = parse_block({"endmacro"});
    loops_ = loops;
    close("endmacro");
    return out;
  }

  /// call, filter and generation.
  std::unique_ptr<Statement> parse_enclosed(Statement::Kind kind, std::string_view end) {
    auto out = make(kind);
    if (kind == Statement::Kind::call_block) {
      out->expr = parse_expression();
      if (out->expr->kind != Expr::Kind::call) {
        wrong("{% call %} wants a call of a macro");
      }
    } else if (kind == Statement::Kind::filter_block) {
      out->expr = parse_filter(nullptr);
      while (takes("|")) {
        out->expr = parse_filter(std::move(out->expr));
      }
    }
    expect(Kind::block_end, "%}");
    out->body = parse_block({end});
    close(end);
    return out;
  }

  // Expressions, from what binds least.
  ExprPtr make(Expr::Kind kind) const {
    auto out = std::make_unique<Expr>();
    out->kind = kind;
    out->line = now().line;
    return out;
  }
  ExprPtr joined(Expr::Kind kind, std::string word, ExprPtr a, ExprPtr b) const {
    ExprPtr out = make(kind);
    out->text = std::move(word);
    out->parts.push_back(std::move(a));
    out->parts.push_back(std::move(b));
    return out;
  }

  ExprPtr parse_tuple() {
    ExprPtr first = parse_expression();
    return now().is(",") ? parse_rest_of_list(std::move(first)) : std::move(first);
  }
  ExprPtr parse_rest_of_list(ExprPtr first) {
    ExprPtr out = make(Expr::Kind::list);
    out->parts.push_back(std::move(first));
    while (takes(",")) {
      if (now().kind == Kind::block_end || now().kind == Kind::print_end || now().is(")")) {
        break;
      }
      out->parts.push_back(parse_expression());
    }
    return out;
  }

  ExprPtr parse_expression() {
    const Deeper deeper(*this);
    ExprPtr out = parse_or();
    while (takes("if")) {
      ExprPtr conditional = make(Expr::Kind::conditional);
      conditional->parts.push_back(std::move(out));
      conditional->parts.push_back(parse_or());
      conditional->parts.push_back(takes("else") ? parse_expression() : nullptr);
      out = std::move(conditional);
    }
    return out;
  }

  ExprPtr parse_or() {
    ExprPtr out = parse_and();
    while (takes("or")) {
      out = joined(Expr::Kind::binary, "or", std::move(out), parse_and());
    }
    return out;
  }
  ExprPtr parse_and() {
    ExprPtr out = parse_not();
    while (takes("and")) {
      out = joined(Expr::Kind::binary, "and", std::move(out), parse_not());
    }
    return out;
  }
  ExprPtr parse_not() {
    if (!now().is("not")) {
      return parse_comparison();
    }
    const Deeper deeper(*this);
    ExprPtr out = make(Expr::Kind::unary);
    out->text = take().text;
    out->parts.push_back(parse_not());
    return out;
  }

  std::string comparison() {
    for (const std::string_view word : {"==", "!=", "<=", ">=", "<", ">", "in"}) {
      if (takes(word)) {
        return std::string(word);
      }
    }
    if (now().is("not") && tokens_[at_ + 1].is("in")) {
      at_ += 2;
      return "not in";
    }
    return "";
  }

  ExprPtr parse_comparison() {
    ExprPtr first = parse_sum();
    std::string word = comparison();
    if (word.empty()) {
      return first;
    }
    ExprPtr out = make(Expr::Kind::compare);
    out->parts.push_back(std::move(first));
    for (; !word.empty(); word = comparison()) {
      out->words.push_back(word);
      out->parts.push_back(parse_sum());
    }
    return out;
  }

  ExprPtr parse_sum() {
    ExprPtr out = parse_concatenation();
    while (now().is("+") || now().is("-")) {
      const std::string word = take().text;
      out = joined(Expr::Kind::binary, word, std::move(out), parse_concatenation());
    }
    return out;
  }
  ExprPtr parse_concatenation() {
    ExprPtr out = parse_product();
    while (takes("~")) {
      out = joined(Expr::Kind::binary, "~", std::move(out), parse_product());
    }
    return out;
  }
  ExprPtr parse_product() {
    ExprPtr out = parse_power();
    while (now().is("*") || now().is("/") || now().is("//") || now().is("%")) {
      const std::string word = take().text;
      out = joined(Expr::Kind::binary, word, std::move(out), parse_power());
    }
    return out;
  }
  ExprPtr parse_power() {
    ExprPtr out = parse_unary(true);
    while (takes("**")) {
      out = joined(Expr::Kind::binary, "**", std::move(out), parse_unary(true));
    }
    return out;
  }

  ExprPtr parse_unary(bool with_filters) {
    ExprPtr out;
    if (now().is("-") || now().is("+")) {
      const Deeper deeper(*this);
      out = make(Expr::Kind::unary);
      out->text = take().text;
      out->parts.push_back(parse_unary(false));
    } else {
      out = parse_postfix(parse_primary());
    }
    return with_filters ? parse_filters(std::move(out)) : std::move(out);
  }

  ExprPtr parse_primary() {
    const Token& token = now();
    if (token.kind == Kind::name) {
      return parse_name();
    }
    if (token.kind == Kind::integer || token.kind == Kind::real) {
      ExprPtr out = make(Expr::Kind::literal);
      out->value = token.kind == Kind::integer ? Value(token.integer) : Value(token.real);
      take();
      return out;
    }
    if (token.kind == Kind::text) {
      ExprPtr out = make(Expr::Kind::literal);
      std::string text;
      while (now().kind == Kind::text) {
        text += take().text;
      }
      out->value = Value::text(text);
      return out;
    }
    if (takes("(")) {
      return parse_bracket();
    }
    if (takes("[")) {
      ExprPtr out = make(Expr::Kind::list);
      parse_items("]", [&] { out->parts.push_back(parse_expression()); });
      return out;
    }
    if (takes("{")) {
      ExprPtr out = make(Expr::Kind::dict);
      parse_items("}", [&] {
        out->parts.push_back(parse_expression());
        expect(":");
        out->parts.push_back(parse_expression());
      });
      return out;
    }
    wrong(format("a value expected, found {}", seen()));
  }

  ExprPtr parse_name() {
    const std::string word = take().text;
    ExprPtr out = make(Expr::Kind::literal);
    if (word == "true" || word == "True" || word == "false" || word == "False") {
      out->value = Value(word == "true" || word == "True");
    } else if (word == "none" || word == "None") {
      out->value = Value(None{});
    } else {
      out->kind = Expr::Kind::name;
      out->text = word;
    }
    return out;
  }

  ExprPtr parse_bracket() {
    if (takes(")")) {
      return make(Expr::Kind::list);
    }
    ExprPtr out = parse_tuple();
    expect(")");
    return out;
  }

  template <class F>
  void parse_items(std::string_view end, F item) {
    while (!takes(end)) {
      item();
      if (!now().is(end)) {
        expect(",");
      }
    }
  }

  ExprPtr parse_postfix(ExprPtr out) {
    for (;;) {
      if (takes(".")) {
        ExprPtr next = make(Expr::Kind::attribute);
        if (now().kind == Kind::integer) {
          next->kind = Expr::Kind::item;
          next->parts.push_back(std::move(out));
          next->parts.push_back(parse_primary());
        } else {
          next->text = expect_name();
          next->parts.push_back(std::move(out));
        }
        out = std::move(next);
      } else if (takes("[")) {
        out = parse_subscript(std::move(out));
      } else if (now().is("(")) {
        ExprPtr next = make(Expr::Kind::call);
        next->parts.push_back(std::move(out));
        parse_arguments(*next);
        out = std::move(next);
      } else {
        return out;
      }
    }
  }

  ExprPtr parse_subscript(ExprPtr object) {
    ExprPtr out = make(Expr::Kind::item);
    out->parts.push_back(std::move(object));
    out->parts.push_back(now().is(":") ? nullptr : parse_expression());
    if (now().is(":")) {
      out->kind = Expr::Kind::slice;
      for (int i = 0; i < 2; ++i) {
        const bool given = takes(":") && !now().is(":") && !now().is("]");
        out->parts.push_back(given ? parse_expression() : nullptr);
      }
    }
    expect("]");
    return out;
  }

  void parse_arguments(Expr& call) {
    expect("(");
    parse_items(")", [&] {
      if (now().is("*") || now().is("**")) {
        wrong("* and ** in a call are not known here");
      }
      if (now().kind == Kind::name && tokens_[at_ + 1].is("=")) {
        const std::string name = take().text;
        take();
        call.named.emplace_back(name, parse_expression());
      } else {
        call.parts.push_back(parse_expression());
      }
    });
  }

  ExprPtr parse_filters(ExprPtr out) {
    for (;;) {
      if (takes("|")) {
        out = parse_filter(std::move(out));
      } else if (now().is("is")) {
        take();
        out = parse_test(std::move(out));
      } else if (now().is("(") || now().is(".") || now().is("[")) {
        out = parse_postfix(std::move(out));
      } else {
        return out;
      }
    }
  }

  ExprPtr parse_filter(ExprPtr value) {
    ExprPtr out = make(Expr::Kind::filter);
    out->text = expect_name();
    check_filter(out->text, out->line);
    out->parts.push_back(std::move(value));
    if (now().is("(")) {
      parse_arguments(*out);
    }
    return out;
  }

  ExprPtr parse_test(ExprPtr value) {
    const bool negated = takes("not");
    ExprPtr out = make(Expr::Kind::test);
    out->text = expect_name();
    check_test(out->text, out->line);
    out->parts.push_back(std::move(value));
    const bool starts_value = now().kind == Kind::name || now().kind == Kind::text || now().kind == Kind::integer ||
                              now().kind == Kind::real || now().is("[") || now().is("{");
    const bool word =
        now().is("else") || now().is("or") || now().is("and") || now().is("is") || now().is("if") || now().is("in") || now().is("not");
    if (now().is("(")) {
      parse_arguments(*out);
    } else if (starts_value && !word) {
      out->parts.push_back(parse_postfix(parse_primary()));
    }
    if (!negated) {
      return out;
    }
    ExprPtr opposite = make(Expr::Kind::unary);
    opposite->text = "not";
    opposite->parts.push_back(std::move(out));
    return opposite;
  }

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
  int loops_ = 0;
  bool generation_ = false;
};

}  // namespace

Parsed parse(std::string_view source) { return Parser(source).run(); }

}  // namespace kf::jinja
