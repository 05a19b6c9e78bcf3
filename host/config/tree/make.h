#pragma once
// Trees written in code.

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "config/tree/node.h"

namespace kf::config {

/// { key = value, ... } in this order.
inline Node make_table(std::initializer_list<std::pair<const char*, Node>> entries) {
  Table out;
  for (const auto& [key, value] : entries) {
    out[key] = value;
  }
  return Node(std::move(out));
}

inline Node make_text(const char* value) { return Node(std::string(value)); }

inline Node make_texts(const std::vector<std::string>& values) { return Node(Array(values.begin(), values.end())); }

}  // namespace kf::config
