#pragma once
// A template taken apart into tokens, with Jinja's rules for white space (trim_blocks and lstrip_blocks, as chat templates are read).

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kf::jinja {

struct Token {
  enum class Kind { data, block_begin, block_end, print_begin, print_end, name, text, integer, real, op, end };
  Kind kind = Kind::end;
  std::string text;  // as read: of strings what they hold
  std::int64_t integer = 0;
  double real = 0;
  int line = 1;

  bool is(std::string_view op_or_name) const { return (kind == Kind::op || kind == Kind::name) && text == op_or_name; }
};

/// Ends with a token `end`. Throws Code::config naming the line.
std::vector<Token> tokenize(std::string_view source);

}  // namespace kf::jinja
