#pragma once
// The value tree as JSON text and back.

#include <string>
#include <string_view>

#include "config/tree/node.h"

namespace kf::config {

/// What becomes of values that JSON lacks: numbers that are not finite, and strings that are not UTF-8.
enum class JsonStyle {
  plain,  // numbers as the strings "inf", "-inf", "nan"; such strings are an error
  exact,  // tagged, {"$real": "inf"} and {"$bytes": "00ff"}, so that `parse_json` gives back the very same tree
};

/// The shortest text that reads back to the same double, with a point or exponent so that it stays a real: 6.0, 0.00035, 1e+300.
/// "inf", "-inf" and "nan" in quotes.
std::string json_number(double value);

/// One line, or with `indent` > 0 one entry a line. Throws Code::other for a string that is not UTF-8 in plain style.
std::string to_json(const Node& node, JsonStyle style = JsonStyle::plain, int indent = 0);

/// A cell of a table: nothing for null, strings and numbers as they are, JSON of anything else.
std::string to_cell(const Node& node);

/// Strict: repeated keys, integers beyond int64, and trailing text are errors, and so is nesting deeper than 200. `name` stands in the
/// messages (Code::data) and in the origins.
Node parse_json(std::string_view text, const std::string& name, JsonStyle style = JsonStyle::plain);

}  // namespace kf::config
