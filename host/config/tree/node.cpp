#include "config/tree/node.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/text.h"

namespace kf::config {

std::string to_text(const Origin& origin) {
  switch (origin.kind) {
    case Origin::Kind::fallback: return "default";
    case Origin::Kind::cli: return origin.file;
    default: return origin.line > 0 ? format("{}:{}", origin.file, origin.line) : origin.file;
  }
}

const Node* Table::find(std::string_view key) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [key](const Entry& entry) { return entry.first == key; });
  return found == entries_.end() ? nullptr : &found->second;
}

Node* Table::find(std::string_view key) { return const_cast<Node*>(std::as_const(*this).find(key)); }

Node& Table::operator[](std::string_view key) {
  if (Node* found = find(key)) {
    return *found;
  }
  return entries_.emplace_back(std::string(key), Node()).second;
}

bool Table::erase(std::string_view key) {
  return std::erase_if(entries_, [key](const Entry& entry) { return entry.first == key; }) > 0;
}

bool operator==(const Table& a, const Table& b) {
  return a.size() == b.size() && std::all_of(a.begin(), a.end(), [&b](const Table::Entry& entry) {
           const Node* other = b.find(entry.first);
           return other != nullptr && *other == entry.second;
         });
}

void merge(Table& base, const Table& over) {
  for (const auto& [key, node] : over) {
    Node& target = base[key];
    if (target.table() && node.table()) {
      target.origin = node.origin;
      target.key_origin = node.key_origin;
      merge(*target.table(), *node.table());
    } else {
      target = node;
    }
  }
}

std::string to_text(const Node& node) {
  struct Writer {
    std::string operator()(std::monostate) const { return "null"; }
    std::string operator()(bool value) const { return kf::to_text(value); }
    std::string operator()(std::int64_t value) const { return kf::to_text(value); }
    std::string operator()(double value) const { return kf::to_text(value); }
    std::string operator()(const std::string& value) const {
      const std::string escaped = kf::quoted(value);
      return "'" + escaped.substr(1, escaped.size() - 2) + "'";
    }
    std::string operator()(const Array& value) const {
      std::vector<std::string> parts;
      for (const Node& item : value) {
        parts.push_back(to_text(item));
      }
      return "[" + join(parts, ", ") + "]";
    }
    std::string operator()(const Table& value) const {
      std::vector<std::string> parts;
      for (const auto& [key, item] : value) {
        parts.push_back(key + " = " + to_text(item));
      }
      return parts.empty() ? "{}" : "{ " + join(parts, ", ") + " }";
    }
  };
  return std::visit(Writer(), node.value);
}

std::string brief(const Node& node) {
  std::string text = to_text(node);
  if (text.size() > 80) {
    std::size_t end = 60;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) {
      --end;  // not in the middle of a character
    }
    text = text.substr(0, end) + "...";
  }
  return text;
}

const Node* find_node(const Table& tree, std::string_view key) {
  const Table* table = &tree;
  const Node* node = nullptr;
  while (!key.empty()) {
    if (key.front() == '[') {
      std::size_t index = 0;
      const std::size_t close = key.find(']');
      std::from_chars(key.data() + 1, key.data() + std::min(close, key.size()), index);
      const Array* list = node ? node->array() : nullptr;
      if (close == std::string_view::npos || !list || index >= list->size()) {
        return nullptr;
      }
      node = &(*list)[index];
      key.remove_prefix(close + 1);
    } else {
      const std::size_t end = std::min(key.find_first_of(".["), key.size());
      node = table ? table->find(key.substr(0, end)) : nullptr;
      if (!node) {
        return nullptr;
      }
      key.remove_prefix(end);
    }
    table = node->table();
    if (key.starts_with('.')) {
      key.remove_prefix(1);
    }
  }
  return node;
}

}  // namespace kf::config
