#pragma once
// What a pickle says, as a tree of our own values. Nothing of it is ever called: a class or function of Python is a name here, and what was
// made by calling it is that name with its arguments.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kf::pickle {

enum class Kind : std::uint8_t {
  none,
  boolean,
  integer,
  large_integer,  // beyond 64 bits: its bytes, little-endian
  real,
  text,
  bytes,
  list,
  tuple,
  set,
  dict,
  global,    // the name of a class or function: "torch.FloatStorage"
  object,    // a global with its arguments, and the state that was set on it
  reference  // what the writer stores elsewhere (a persistent id): torch's storages
};

/// "a list": for messages.
std::string_view words_for(Kind kind);

using Id = std::uint32_t;

struct Node {
  Kind kind = Kind::none;
  std::int64_t integer = 0;  // boolean, integer
  double real = 0;
  std::string_view text = {};  // text, bytes, large_integer (within the pickle), global, object (its global)
  std::vector<Id> items = {};  // list, tuple, set; dict: key, value, key, value; object: its arguments (a tuple), state; reference: the id
};

/// A node with what lies below it: a tree of bounded depth and size (`Limits`), although equal parts may be stored once. Valid as long as
/// the nodes are and, for its texts, the pickle's bytes.
class Value {
 public:
  Value(const std::vector<Node>& nodes, Id id) : nodes_(&nodes), id_(id) {}

  Kind kind() const { return node().kind; }
  bool is(Kind kind) const { return node().kind == kind; }
  /// A global of this name, or an object of it.
  bool is(Kind kind, std::string_view name) const { return is(kind) && node().text == name; }

  bool boolean() const { return node().integer != 0; }
  std::int64_t integer() const { return node().integer; }
  double real() const { return node().real; }
  std::string_view text() const { return node().text; }

  /// Of a list, tuple, set, dict (pairs) or object (arguments).
  std::size_t size() const;
  /// Of a list, tuple or set; an object's argument.
  Value item(std::size_t index) const;
  Value key(std::size_t index) const { return at(node().items.at(2 * index)); }
  Value value(std::size_t index) const { return at(node().items.at(2 * index + 1)); }
  /// The value of a dict under a text, the last one where it is there twice, as in Python; nothing where it is no dict or lacks it.
  std::optional<Value> find(std::string_view key) const;
  /// What was set on an object.
  std::optional<Value> state() const;
  /// What a reference means.
  Value target() const { return at(node().items.at(0)); }

 private:
  const Node& node() const { return (*nodes_)[id_]; }
  Value at(Id id) const { return {*nodes_, id}; }

  const std::vector<Node>* nodes_;
  Id id_;
};

}  // namespace kf::pickle
