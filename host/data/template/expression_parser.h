#pragma once
// Tokens of a template, and the expressions that they make. Precedences are those of Jinja's parser.

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "data/template/ast.h"
#include "data/template/lexer.h"

namespace kf::jinja {

/// Reads from where it stands; every fault is Code::config and names the line.
class ExpressionParser {
 public:
  using Kind = Token::Kind;

  explicit ExpressionParser(std::string_view source) : tokens_(tokenize(source)) {}

  // Tokens.
  const Token& now() const { return tokens_[at_]; }
  const Token& next() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
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
    explicit Deeper(ExpressionParser& parser) : parser_(parser) {
      if (++parser_.depth_ > kDeepest) {
        parser_.wrong(format("nested more than {} deep", kDeepest));
      }
    }
    ~Deeper() { --parser_.depth_; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;
    ExpressionParser& parser_;
  };

  // Expressions, from what binds least.
  ExprPtr make(Expr::Kind kind) const;
  ExprPtr joined(Expr::Kind kind, std::string word, ExprPtr a, ExprPtr b) const;
  ExprPtr parse_tuple();
  ExprPtr parse_rest_of_list(ExprPtr first);
  ExprPtr parse_expression();
  ExprPtr parse_or();
  ExprPtr parse_and();
  ExprPtr parse_not();
  std::string comparison();
  ExprPtr parse_comparison();
  ExprPtr parse_sum();
  ExprPtr parse_concatenation();
  ExprPtr parse_product();
  ExprPtr parse_power();
  ExprPtr parse_unary(bool with_filters);
  ExprPtr parse_primary();
  ExprPtr parse_name();
  ExprPtr parse_bracket();
  ExprPtr parse_postfix(ExprPtr out);
  ExprPtr parse_subscript(ExprPtr object);
  void parse_arguments(Expr& call);
  ExprPtr parse_filters(ExprPtr out);
  ExprPtr parse_filter(ExprPtr value);
  ExprPtr parse_test(ExprPtr value);

  template <class F>
  void parse_items(std::string_view end, F item) {
    while (!takes(end)) {
      item();
      if (!now().is(end)) {
        expect(",");
      }
    }
  }

 private:
  static constexpr int kDeepest = 100;  // nesting of expressions and blocks

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace kf::jinja
