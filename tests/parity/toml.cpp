#include "parity/toml.h"

#include "core/text.h"

namespace kf::parity {
namespace {

std::string inline_value(const Node& node) {
  std::vector<std::string> parts;
  if (const Array* items = node.array()) {
    for (const Node& item : *items) {
      parts.push_back(inline_value(item));
    }
    return "[" + join(parts, ", ") + "]";
  }
  if (const Table* entries = node.table()) {
    for (const auto& [key, value] : *entries) {
      if (!value.is_null()) {
        parts.push_back(kf::quoted(key) + " = " + inline_value(value));
      }
    }
    return "{" + join(parts, ", ") + "}";
  }
  if (const auto* word = std::get_if<std::string>(&node.value)) {
    return kf::quoted(*word);
  }
  if (const auto* flag = std::get_if<bool>(&node.value)) {
    return to_text(*flag);
  }
  if (const auto* whole = std::get_if<std::int64_t>(&node.value)) {
    return to_text(*whole);
  }
  return to_text(std::get<double>(node.value));
}

}  // namespace

std::string to_toml(const Table& sections) {
  std::string out;
  for (const auto& [section, values] : sections) {
    out += "[" + section + "]\n";
    for (const auto& [key, value] : table(values, section)) {
      if (!value.is_null()) {
        out += key + " = " + inline_value(value) + "\n";
      }
    }
  }
  return out;
}

}  // namespace kf::parity
