#include "parity/json.h"

#include <algorithm>
#include <cmath>

#include "config/tree/json.h"
#include "core/error.h"

namespace kf::parity {
namespace {

[[noreturn]] void wrong(const Node& node, std::string_view what, std::string_view wanted) {
  fail(Code::other, "{} is {}, not {}", what, shown(node).substr(0, 60), wanted);
}

}  // namespace

bool is_number(const Node& node) {
  if (const auto* word = std::get_if<std::string>(&node.value)) {
    return *word == "nan" || *word == "inf" || *word == "-inf";
  }
  return std::holds_alternative<std::int64_t>(node.value) || std::holds_alternative<double>(node.value);
}

double number(const Node& node, std::string_view what) {
  if (!is_number(node)) {
    wrong(node, what, "a number");
  }
  if (const auto* word = std::get_if<std::string>(&node.value)) {
    return *word == "nan" ? std::nan("") : *word == "inf" ? HUGE_VAL : -HUGE_VAL;
  }
  const auto* whole = std::get_if<std::int64_t>(&node.value);
  return whole ? static_cast<double>(*whole) : std::get<double>(node.value);
}

std::int64_t integer(const Node& node, std::string_view what) {
  const auto* value = std::get_if<std::int64_t>(&node.value);
  if (!value) {
    wrong(node, what, "an integer");
  }
  return *value;
}

std::string text(const Node& node, std::string_view what) {
  const auto* value = std::get_if<std::string>(&node.value);
  if (!value) {
    wrong(node, what, "a string");
  }
  return *value;
}

bool boolean(const Node& node, std::string_view what) {
  const auto* value = std::get_if<bool>(&node.value);
  if (!value) {
    wrong(node, what, "true or false");
  }
  return *value;
}

const Array& list(const Node& node, std::string_view what) {
  if (!node.array()) {
    wrong(node, what, "a list");
  }
  return *node.array();
}

const Table& table(const Node& node, std::string_view what) {
  if (!node.table()) {
    wrong(node, what, "a table");
  }
  return *node.table();
}

std::vector<std::int64_t> integers(const Node& node, std::string_view what) {
  std::vector<std::int64_t> out;
  for (const Node& item : list(node, what)) {
    out.push_back(integer(item, what));
  }
  return out;
}

std::vector<double> numbers(const Node& node, std::string_view what) {
  std::vector<double> out;
  for (const Node& item : list(node, what)) {
    out.push_back(number(item, what));
  }
  return out;
}

const Node& at(const Table& table, std::string_view key) {
  const Node* node = get(table, key);
  KF_CHECK(node, Code::other, "the case has no field '{}'", key);
  return *node;
}

const Node* get(const Table& table, std::string_view key) {
  const Node* node = table.find(key);
  return node && !node->is_null() ? node : nullptr;
}

std::string shown(const Node& node) { return config::to_json(node, config::JsonStyle::exact); }

bool same(const Node& a, const Node& b) {
  if (a.table() || b.table()) {
    if (!a.table() || !b.table() || a.table()->size() != b.table()->size()) {
      return false;
    }
    const bool all = std::all_of(a.table()->begin(), a.table()->end(), [&](const auto& entry) {
      const Node* other = b.table()->find(entry.first);
      return other != nullptr && same(entry.second, *other);
    });
    if (!all) {
      return false;
    }
    return true;
  }
  if (a.array() || b.array()) {
    if (!a.array() || !b.array() || a.array()->size() != b.array()->size()) {
      return false;
    }
    for (std::size_t i = 0; i < a.array()->size(); ++i) {
      if (!same((*a.array())[i], (*b.array())[i])) {
        return false;
      }
    }
    return true;
  }
  if (is_number(a) && is_number(b)) {
    const double x = number(a, ""), y = number(b, "");
    return x == y || (std::isnan(x) && std::isnan(y));
  }
  return a.value.index() == b.value.index() && shown(a) == shown(b);
}

}  // namespace kf::parity
