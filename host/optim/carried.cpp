#include "optim/carried.h"

#include <ATen/ATen.h>

#include <string>
#include <utility>
#include <vector>

#include "config/tree/json.h"

namespace kf {
namespace {

using config::Array;
using config::Node;
using config::Table;

template <class Numbers>
Node table_of(const Numbers& numbers) {
  Table out;
  for (const auto& [name, number] : numbers) {
    out[name] = Node(number);
  }
  return Node(std::move(out));
}

template <class Number>
void take(const Node& table, std::map<std::string, Number>& out) {
  for (const auto& [name, number] : *table.table()) {
    out[name] = std::get<Number>(number.value);
  }
}

/// What its tensors are like, and all its numbers.
std::string text_of(const OptimizerState& state) {
  Array kinds;
  for (const auto& [name, tensor] : state.tensors) {
    Array sizes;
    for (const std::int64_t size : tensor.sizes()) {
      sizes.emplace_back(size);
    }
    kinds.emplace_back(Array{Node(name), Node(static_cast<std::int64_t>(tensor.scalar_type())), Node(std::move(sizes))});
  }
  return config::to_json(Node(Array{Node(std::move(kinds)), table_of(state.integers), table_of(state.reals)}), config::JsonStyle::exact);
}

/// The same with room for its tensors.
OptimizerState room_for(const std::string& text) {
  const Node node = config::parse_json(text, "the state of another worker", config::JsonStyle::exact);
  const Array& parts = *node.array();
  OptimizerState out;
  out.owned = true;
  for (const Node& one : *parts.at(0).array()) {
    const Array& kind = *one.array();
    std::vector<std::int64_t> sizes;
    for (const Node& size : *kind.at(2).array()) {
      sizes.push_back(std::get<std::int64_t>(size.value));
    }
    const auto type = static_cast<at::ScalarType>(std::get<std::int64_t>(kind.at(1).value));
    out.tensors[std::get<std::string>(kind.at(0).value)] = at::empty(sizes, at::TensorOptions(type));
  }
  take(parts.at(1), out.integers);
  take(parts.at(2), out.reals);
  return out;
}

}  // namespace

OptimizerState carried(const OptimizerState& mine, Group& group) {
  const bool gives = group.rank() == 0;
  const std::string text = group.tell(gives ? text_of(mine) : "").front();
  OptimizerState out = gives ? mine : room_for(text);
  for (const auto& [name, tensor] : out.tensors) {
    if (tensor.numel() > 0) {
      group.broadcast(tensor.contiguous(), 0);
    }
  }
  return out;
}

}  // namespace kf
