#pragma once
// Words in a tree of bytes: which of them begin at a place of a text.

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "data/tokenizer/flat_map.h"

namespace kf {

class Trie {
 public:
  static constexpr std::uint32_t kNone = 0xffffffff;

  Trie() : values_(1, kNone) { first_.fill(kNone); }

  /// An earlier value of the same word stays, unless `replace`.
  void add(std::string_view word, std::uint32_t value, bool replace = false) {
    std::uint32_t node = 0;
    for (const char c : word) {
      std::uint32_t& child = node == 0 ? first_[static_cast<unsigned char>(c)] : children_[key(node, c)].node;
      if (child == kNone) {
        child = static_cast<std::uint32_t>(values_.size());
        values_.push_back(kNone);
      }
      node = child;
    }
    if (values_[node] == kNone || replace) {
      values_[node] = value;
    }
  }

  bool empty() const { return values_.size() == 1; }
  /// Whether some word begins with this byte.
  bool begins(char c) const { return first_[static_cast<unsigned char>(c)] != kNone; }

  /// Calls found(bytes, value) for each word that `text` begins with, the shortest first.
  template <class Found>
  void prefixes(std::string_view text, const Found& found) const {
    std::uint32_t node = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      node = step(node, text[i]);
      if (node == kNone) {
        return;
      }
      if (values_[node] != kNone) {
        found(i + 1, values_[node]);
      }
    }
  }

  struct Match {
    std::size_t size = 0;  // 0: none
    std::uint32_t value = kNone;
  };
  Match longest(std::string_view text) const {
    Match best;
    prefixes(text, [&](std::size_t size, std::uint32_t value) { best = {size, value}; });
    return best;
  }

 private:
  struct Child {
    std::uint32_t node = kNone;
  };
  static std::uint64_t key(std::uint32_t node, char c) { return std::uint64_t{node} << 8 | static_cast<unsigned char>(c); }
  std::uint32_t step(std::uint32_t node, char c) const {
    if (node == 0) {
      return first_[static_cast<unsigned char>(c)];
    }
    const Child* child = children_.find(key(node, c));
    return child == nullptr ? kNone : child->node;
  }

  std::array<std::uint32_t, 256> first_;
  FlatMap<Child> children_;
  std::vector<std::uint32_t> values_;  // by node; kNone: no word ends here
};

}  // namespace kf
