#include "config/huggingface/reader.h"

#include <algorithm>
#include <cmath>

#include "config/huggingface/notes.h"
#include "core/text.h"

namespace kf::config::huggingface {

const Node* Reader::take(std::string_view key) {
  taken_.emplace_back(key);
  const Node* node = json_.find(key);
  return node && !node->is_null() ? node : nullptr;
}

void Reader::wrong_type(std::string_view key, const Node& node, std::string_view wanted) {
  const auto* const number = std::get_if<double>(&node.value);
  const bool whole = number != nullptr && std::floor(*number) == *number && std::abs(*number) < 1e15;
  problem(format("{} = {}{} is not {}", key, brief(node), whole ? ".0" : "", wanted));
}

std::optional<std::int64_t> Reader::maybe_integer(std::string_view key) {
  const Node* node = take(key);
  if (!node) {
    return std::nullopt;
  }
  if (const auto* value = std::get_if<std::int64_t>(&node->value)) {
    return *value;
  }
  wrong_type(key, *node, "an integer");
  return std::nullopt;
}

std::int64_t Reader::integer(std::string_view key, std::optional<std::int64_t> fallback) {
  if (!has(key) && !fallback) {
    problem(format("{} is missing", key));
  }
  return maybe_integer(key).value_or(fallback.value_or(1));
}

std::optional<double> Reader::maybe_real(std::string_view key) {
  const Node* node = take(key);
  if (!node) {
    return std::nullopt;
  }
  if (const auto* value = std::get_if<double>(&node->value)) {
    return *value;
  }
  if (const auto* value = std::get_if<std::int64_t>(&node->value)) {
    return static_cast<double>(*value);
  }
  wrong_type(key, *node, "a number");
  return std::nullopt;
}

double Reader::real(std::string_view key, std::optional<double> fallback) {
  if (!has(key) && !fallback) {
    problem(format("{} is missing", key));
  }
  return maybe_real(key).value_or(fallback.value_or(1));
}

bool Reader::flag(std::string_view key, bool fallback) {
  const Node* node = take(key);
  if (!node) {
    return fallback;
  }
  if (const auto* value = std::get_if<bool>(&node->value)) {
    return *value;
  }
  wrong_type(key, *node, "true or false");
  return fallback;
}

std::string Reader::text(std::string_view key, const std::string& fallback) {
  const Node* node = take(key);
  if (!node) {
    return fallback;
  }
  if (const auto* value = std::get_if<std::string>(&node->value)) {
    return *value;
  }
  wrong_type(key, *node, "a text");
  return fallback;
}

const Table* Reader::table(std::string_view key) {
  const Node* node = take(key);
  if (node && !node->table()) {
    wrong_type(key, *node, "a table");
  }
  return node ? node->table() : nullptr;
}

const Array* Reader::list(std::string_view key) {
  const Node* node = take(key);
  if (node && !node->array()) {
    wrong_type(key, *node, "a list");
  }
  return node ? node->array() : nullptr;
}

bool Reader::has(std::string_view key) const {
  const Node* node = json_.find(key);
  return node && !node->is_null();
}

void Reader::ignore(std::initializer_list<std::string_view> keys) { taken_.insert(taken_.end(), keys.begin(), keys.end()); }

void Reader::only(std::string_view key, const Node& value) {
  const Node* node = take(key);
  if (node && !(*node == value)) {
    problem(format("{} = {} is not understood; only {} is", key, brief(*node), brief(value)));
  }
}

bool Reader::asked_for(const std::string& key) const { return std::find(taken_.begin(), taken_.end(), key) != taken_.end(); }

std::vector<std::string> Reader::problems() const {
  std::vector<std::string> all = problems_;
  for (const auto& [key, value] : json_) {
    if (!asked_for(key) && !is_note(key, value)) {
      all.push_back(format("{} = {} is not understood", key, brief(value)));
    }
  }
  return all;
}

std::vector<std::string> Reader::notes() const {
  std::vector<std::string> all = notes_;
  for (const auto& [key, value] : json_) {
    if (!asked_for(key) && is_note(key, value)) {
      all.push_back(value.is_null() ? key + " (null)" : key);
    }
  }
  return all;
}

}  // namespace kf::config::huggingface
