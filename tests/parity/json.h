#pragma once
// Typed access to the value tree of a JSON file, with errors that name the key.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/tree/json.h"

namespace kf::parity {

using config::Array;
using config::Node;
using config::parse_json;
using config::Table;

/// A number; the strings "nan", "inf" and "-inf" are numbers too, as JSON has no word for them.
double number(const Node& node, std::string_view what);
bool is_number(const Node& node);
std::int64_t integer(const Node& node, std::string_view what);
std::string text(const Node& node, std::string_view what);
bool boolean(const Node& node, std::string_view what);
const Array& list(const Node& node, std::string_view what);
const Table& table(const Node& node, std::string_view what);
std::vector<std::int64_t> integers(const Node& node, std::string_view what);
std::vector<double> numbers(const Node& node, std::string_view what);

/// The value of `key`; throws when it is missing or null.
const Node& at(const Table& table, std::string_view key);
/// The value of `key`, or null when it is missing or null.
const Node* get(const Table& table, std::string_view key);

/// One line of JSON: for messages and for exact comparison of trees.
std::string shown(const Node& node);
/// Equality of trees; integers and floats of the same value are equal, the order of keys does not matter.
bool same(const Node& a, const Node& b);

}  // namespace kf::parity
