#include "train/loop/agree.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "config/tree/json.h"
#include "core/log.h"

namespace kf {
namespace {

using config::Array;
using config::Node;
using config::Table;

Node to_node(const std::map<std::string, double>& numbers) {
  Table out;
  for (const auto& [name, number] : numbers) {
    out[name] = Node(number);
  }
  return Node(std::move(out));
}

std::map<std::string, double> numbers_of(const Node& node) {
  std::map<std::string, double> out;
  for (const auto& [name, number] : *node.table()) {
    out[name] = std::get<double>(number.value);
  }
  return out;
}

/// The names of RunMessage::Kind, in its order.
constexpr const char* kMessages[] = {"stop", "unwritten", "chunk", "reload"};

Node to_node(const std::vector<RunMessage>& messages) {
  Array out;
  for (const RunMessage& message : messages) {
    const std::string kind = kMessages[static_cast<std::size_t>(message.kind)];
    out.emplace_back(Array{Node(kind), Node(message.text), Node(message.asker)});
  }
  return Node(std::move(out));
}

std::vector<RunMessage> messages_of(const Node& node) {
  std::vector<RunMessage> out;
  for (const Node& message : *node.array()) {
    const Array& parts = *message.array();
    const auto* const at = std::find(std::begin(kMessages), std::end(kMessages), std::get<std::string>(parts[0].value));
    out.push_back({static_cast<RunMessage::Kind>(at - std::begin(kMessages)), std::get<std::string>(parts[1].value),
                   std::get<std::int64_t>(parts[2].value)});
  }
  return out;
}

Node names_node(const std::vector<std::string>& names) {
  Array out;
  for (const std::string& name : names) {
    out.emplace_back(name);
  }
  return Node(std::move(out));
}

std::vector<std::string> names_of(const Node& node) {
  std::vector<std::string> out;
  for (const Node& name : *node.array()) {
    out.push_back(std::get<std::string>(name.value));
  }
  return out;
}

/// What a rank asks for, as text; "" for nothing, which is nearly always.
std::string to_text(const Requests& mine) {
  Controls c = mine.controls;
  c.skip_update.clear();
  if (c == Controls() && mine.messages.empty()) {
    return {};
  }
  Table out;
  if (c.stop) {
    out["stop"] = Node(*c.stop);
  }
  out["saves"] = names_node(c.saves);
  out["exports"] = names_node(c.exports);
  out["eval"] = Node(c.eval);
  if (c.lr_scale) {
    out["lr_scale"] = Node(*c.lr_scale);
  }
  if (c.mixture) {
    out["mixture"] = to_node(*c.mixture);
  }
  out["loss_weights"] = to_node(c.loss_weights);
  Array freezing;
  for (const Controls::Freezing& change : c.freezing) {
    freezing.emplace_back(Array{Node(change.pattern), Node(change.frozen), Node(change.asked_at)});
  }
  out["freezing"] = Node(std::move(freezing));
  if (c.rollback) {
    out["rollback"] = Node(*c.rollback);
  }
  out["messages"] = to_node(mine.messages);
  return config::to_json(Node(std::move(out)), config::JsonStyle::exact);
}

template <class T>
std::optional<T> optional_of(const Table& table, const char* key) {
  const Node* const node = table.find(key);
  return node != nullptr ? std::optional(std::get<T>(node->value)) : std::nullopt;
}

Requests from_text(const std::string& text) {
  if (text.empty()) {
    return {};
  }
  Controls out;
  const Node node = config::parse_json(text, "what a rank asks for", config::JsonStyle::exact);
  const Table& table = *node.table();
  out.stop = optional_of<std::string>(table, "stop");
  out.saves = names_of(*table.find("saves"));
  out.exports = names_of(*table.find("exports"));
  out.eval = std::get<bool>(table.find("eval")->value);
  out.lr_scale = optional_of<double>(table, "lr_scale");
  if (const Node* const mixture = table.find("mixture")) {
    out.mixture = numbers_of(*mixture);
  }
  out.loss_weights = numbers_of(*table.find("loss_weights"));
  for (const Node& change : *table.find("freezing")->array()) {
    const Array& parts = *change.array();
    out.freezing.push_back({std::get<std::string>(parts[0].value), std::get<bool>(parts[1].value), std::get<std::string>(parts[2].value)});
  }
  out.rollback = optional_of<std::string>(table, "rollback");
  return {std::move(out), messages_of(*table.find("messages"))};
}

template <class List>
void add_once(List& all, const List& more) {
  for (const auto& one : more) {
    if (std::find(all.begin(), all.end(), one) == all.end()) {
      all.push_back(one);
    }
  }
}

/// The first one given holds.
template <class T>
void take(std::optional<T>& taken, const std::optional<T>& other, const char* what, std::size_t rank) {
  if (taken && other && *taken != *other) {
    log::warn("ranks ask for different values of {}; that of the lowest rank holds, not that of rank {}", what, rank);
  }
  taken = taken ? taken : other;
}

void merge(Controls& all, const Controls& other, std::size_t rank) {
  all.stop = all.stop ? all.stop : other.stop;
  all.rollback = all.rollback ? all.rollback : other.rollback;
  all.eval = all.eval || other.eval;
  add_once(all.saves, other.saves);
  add_once(all.exports, other.exports);
  add_once(all.freezing, other.freezing);
  take(all.lr_scale, other.lr_scale, "the factor of the learning rate", rank);
  take(all.mixture, other.mixture, "the mixture", rank);
  all.loss_weights.insert(other.loss_weights.begin(), other.loss_weights.end());
}

}  // namespace

Requests agree(Requests mine, Group& all) {
  if (all.size() == 1) {
    return mine;
  }
  const std::vector<std::string> told = all.tell(to_text(mine));
  Requests out;
  for (std::size_t rank = 0; rank < told.size(); ++rank) {
    const Requests other = from_text(told[rank]);
    merge(out.controls, other.controls, rank);
    out.messages.insert(out.messages.end(), other.messages.begin(), other.messages.end());
  }
  out.controls.skip_update = std::move(mine.controls.skip_update);
  return out;
}

bool any_of(bool mine, Group& all) {
  if (all.size() == 1) {
    return mine;
  }
  const at::Tensor any = at::full({1}, mine, at::kBool);
  all.largest(any);
  return any.item<bool>();
}

}  // namespace kf
