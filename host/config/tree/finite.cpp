#include "config/tree/finite.h"

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "core/text.h"

namespace kf::config {

Node with_finite_numbers(const Node& node) {
  if (const Array* const list = node.array()) {
    Array out;
    for (const Node& item : *list) {
      const auto* const real = std::get_if<double>(&item.value);
      out.push_back(real != nullptr && !std::isfinite(*real) ? Node() : with_finite_numbers(item));
    }
    return Node(std::move(out));
  }
  if (node.table() == nullptr) {
    return node;
  }
  Table out, others;
  for (const auto& [key, value] : *node.table()) {
    const auto* const real = std::get_if<double>(&value.value);
    const bool finite = real == nullptr || std::isfinite(*real);
    out[key] = finite ? with_finite_numbers(value) : Node();
    if (!finite) {
      others[key] = Node(kf::to_text(*real));
    }
  }
  if (!others.empty()) {
    out["not_finite"] = Node(std::move(others));
  }
  return Node(std::move(out));
}

std::optional<double> real_at(const Table& table, std::string_view key) {
  const Node* const node = table.find(key);
  if (node == nullptr) {
    return std::nullopt;
  }
  if (const auto* const integer = std::get_if<std::int64_t>(&node->value)) {
    return static_cast<double>(*integer);
  }
  if (const auto* const real = std::get_if<double>(&node->value)) {
    return *real;
  }
  const Node* const others = node->is_null() ? table.find("not_finite") : node;  // earlier versions wrote the text in its place
  const Node* const word = others != nullptr && others->table() != nullptr ? others->table()->find(key) : others;
  const auto* const text = word != nullptr ? std::get_if<std::string>(&word->value) : nullptr;
  if (text == nullptr || (*text != "nan" && *text != "inf" && *text != "-inf")) {
    return std::nullopt;
  }
  constexpr double kInf = std::numeric_limits<double>::infinity();
  return *text == "nan" ? std::numeric_limits<double>::quiet_NaN() : *text == "inf" ? kInf : -kInf;
}

}  // namespace kf::config
