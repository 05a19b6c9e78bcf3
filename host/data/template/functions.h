#pragma once
// What templates can call: filters, tests, methods of values, and functions without an object.

#include <string_view>

#include "data/template/value.h"

namespace kf::jinja {

/// Throw Code::config with the line and the names that there are, when there is none of this name.
void check_filter(std::string_view name, int line);
void check_test(std::string_view name, int line);

/// value | name(arguments). Throws Code::data where the value is of the wrong kind.
Value apply_filter(std::string_view name, const Value& value, const Arguments& arguments);
/// value is name(arguments).
bool apply_test(std::string_view name, const Value& value, const Arguments& arguments);

/// The method of a string, list or dict, bound to it; undefined where it has none of this name.
Value method_of(const Value& object, std::string_view name);

/// range, namespace, dict and raise_exception, which every template may call.
const Value* global_function(std::string_view name);

// Shared by filters and methods.

/// `value` as text, as Python's str(); undefined is "".
const Text& text_of(const Value& value, Text& room);
/// Without what is in `drop` (white space where empty) at the left, the right or both ends.
Text stripped(const Text& text, std::string_view drop, bool left, bool right);
Text replaced(const Text& text, const Text& what, const Text& by, std::int64_t most = -1);
Text joined(const List& items, const Text& between);
enum class Case { upper, lower, capital, title };
Text in_case(const Text& text, Case wanted);

}  // namespace kf::jinja
