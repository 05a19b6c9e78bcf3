#include "data/template/expression_parser.h"

#include "data/template/functions.h"

namespace kf::jinja {

ExprPtr ExpressionParser::make(Expr::Kind kind) const {
  auto out = std::make_unique<Expr>();
  out->kind = kind;
  out->line = now().line;
  return out;
}

ExprPtr ExpressionParser::joined(Expr::Kind kind, std::string word, ExprPtr a, ExprPtr b) const {
  ExprPtr out = make(kind);
  out->text = std::move(word);
  out->parts.push_back(std::move(a));
  out->parts.push_back(std::move(b));
  return out;
}

ExprPtr ExpressionParser::parse_tuple() {
  ExprPtr first = parse_expression();
  return now().is(",") ? parse_rest_of_list(std::move(first)) : std::move(first);
}

ExprPtr ExpressionParser::parse_rest_of_list(ExprPtr first) {
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

ExprPtr ExpressionParser::parse_expression() {
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

ExprPtr ExpressionParser::parse_or() {
  ExprPtr out = parse_and();
  while (takes("or")) {
    out = joined(Expr::Kind::binary, "or", std::move(out), parse_and());
  }
  return out;
}

ExprPtr ExpressionParser::parse_and() {
  ExprPtr out = parse_not();
  while (takes("and")) {
    out = joined(Expr::Kind::binary, "and", std::move(out), parse_not());
  }
  return out;
}

ExprPtr ExpressionParser::parse_not() {
  if (!now().is("not")) {
    return parse_comparison();
  }
  const Deeper deeper(*this);
  ExprPtr out = make(Expr::Kind::unary);
  out->text = take().text;
  out->parts.push_back(parse_not());
  return out;
}

std::string ExpressionParser::comparison() {
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

ExprPtr ExpressionParser::parse_comparison() {
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

ExprPtr ExpressionParser::parse_sum() {
  ExprPtr out = parse_concatenation();
  while (now().is("+") || now().is("-")) {
    const std::string word = take().text;
    out = joined(Expr::Kind::binary, word, std::move(out), parse_concatenation());
  }
  return out;
}

ExprPtr ExpressionParser::parse_concatenation() {
  ExprPtr out = parse_product();
  while (takes("~")) {
    out = joined(Expr::Kind::binary, "~", std::move(out), parse_product());
  }
  return out;
}

ExprPtr ExpressionParser::parse_product() {
  ExprPtr out = parse_power();
  while (now().is("*") || now().is("/") || now().is("//") || now().is("%")) {
    const std::string word = take().text;
    out = joined(Expr::Kind::binary, word, std::move(out), parse_power());
  }
  return out;
}

ExprPtr ExpressionParser::parse_power() {
  ExprPtr out = parse_unary(true);
  while (takes("**")) {
    out = joined(Expr::Kind::binary, "**", std::move(out), parse_unary(true));
  }
  return out;
}

ExprPtr ExpressionParser::parse_unary(bool with_filters) {
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

ExprPtr ExpressionParser::parse_primary() {
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

ExprPtr ExpressionParser::parse_name() {
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

ExprPtr ExpressionParser::parse_bracket() {
  if (takes(")")) {
    return make(Expr::Kind::list);
  }
  ExprPtr out = parse_tuple();
  expect(")");
  return out;
}

ExprPtr ExpressionParser::parse_postfix(ExprPtr out) {
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

ExprPtr ExpressionParser::parse_subscript(ExprPtr object) {
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

void ExpressionParser::parse_arguments(Expr& call) {
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

ExprPtr ExpressionParser::parse_filters(ExprPtr out) {
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

ExprPtr ExpressionParser::parse_filter(ExprPtr value) {
  ExprPtr out = make(Expr::Kind::filter);
  out->text = expect_name();
  check_filter(out->text, out->line);
  out->parts.push_back(std::move(value));
  if (now().is("(")) {
    parse_arguments(*out);
  }
  return out;
}

ExprPtr ExpressionParser::parse_test(ExprPtr value) {
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

}  // namespace kf::jinja
