#pragma once
// What a template says: expressions and statements.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/template/value.h"

namespace kf::jinja {

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

struct Expr {
  enum class Kind {
    literal,      // value
    name,         // text
    list,         // parts; a tuple is one
    dict,         // parts: key, value, key, value
    attribute,    // parts[0] . text
    item,         // parts[0] [parts[1]]
    slice,        // parts[0] [parts[1] : parts[2] : parts[3]], each of the three may be null
    call,         // parts[0] (parts[1...], named)
    filter,       // parts[0] | text(parts[1...], named); parts[0] null in the head of a filter block
    test,         // parts[0] is text(parts[1...])
    unary,        // text parts[0]: - + not
    binary,       // parts[0] text parts[1]: + - * / // % ** ~ and or
    compare,      // parts[0] words[0] parts[1] words[1] parts[2] ...
    conditional,  // parts[0] if parts[1] else parts[2], which may be null
  };
  Kind kind = Kind::literal;
  int line = 1;
  std::string text;
  Value value;
  std::vector<ExprPtr> parts;
  std::vector<std::pair<std::string, ExprPtr>> named;
  std::vector<std::string> words;
};

struct Statement;
using Block = std::vector<std::unique_ptr<Statement>>;

struct Statement {
  enum class Kind {
    data,          // text
    print,         // expr
    condition,     // expr, body, otherwise
    loop,          // names in expr (if condition), body, otherwise where it is empty
    set,           // names = expr; one name may be "ns.x"
    set_block,     // names[0] = body, through the filters of expr if it is there
    macro,         // text(names, defaults), body
    call_block,    // expr, a call; body is its caller()
    filter_block,  // body through expr
    generation,    // body: what the model is to learn
    skip,          // continue
    leave,         // break
  };
  Kind kind = Kind::data;
  int line = 1;
  std::string text;
  ExprPtr expr;
  ExprPtr condition;
  std::vector<std::string> names;
  std::vector<ExprPtr> defaults;  // of the last names
  Block body;
  Block otherwise;
};

}  // namespace kf::jinja
