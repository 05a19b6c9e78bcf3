#pragma once
// A neutral value tree: what TOML, a recipe and the command line become before the schema gives them types.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace kf::config {

/// Where a value came from. `text` is the source line, for messages; a file's line and column count from 1.
struct Origin {
  enum class Kind { fallback, preset, toml, recipe, cli };  // in the order in which layers win
  Kind kind = Kind::fallback;
  std::string file;  // "job.toml", "recipe.lua"; for the command line the option as typed, "--optimizer.lr"
  int line = 0;
  int column = 0;
  std::string text;
};

/// "job.toml:21", "recipe.lua:12", "--optimizer.lr", "default".
std::string to_text(const Origin& origin);

class Node;
using Array = std::vector<Node>;

/// Key-value pairs in the order in which they were written; keys are unique.
class Table {
 public:
  using Entry = std::pair<std::string, Node>;

  const Node* find(std::string_view key) const;
  Node* find(std::string_view key);
  /// The value of `key`, made (null) if absent.
  Node& operator[](std::string_view key);
  bool erase(std::string_view key);
  // The bodies stand below Node: until then an entry is incomplete.
  bool empty() const;
  std::size_t size() const;
  std::vector<Entry>::const_iterator begin() const;
  std::vector<Entry>::const_iterator end() const;
  std::vector<Entry>::iterator begin();
  std::vector<Entry>::iterator end();
  friend bool operator==(const Table& a, const Table& b);  // in any order

 private:
  std::vector<Entry> entries_;
};

/// null, bool, integer, float, string, list or table, and where it stands.
class Node {
 public:
  using Value = std::variant<std::monostate, bool, std::int64_t, double, std::string, Array, Table>;

  Node() = default;
  Node(Value v, Origin from = {}) : value(std::move(v)), origin(std::move(from)) {}

  bool is_null() const { return std::holds_alternative<std::monostate>(value); }
  const Table* table() const { return std::get_if<Table>(&value); }
  Table* table() { return std::get_if<Table>(&value); }
  const Array* array() const { return std::get_if<Array>(&value); }
  Array* array() { return std::get_if<Array>(&value); }

  Value value;
  Origin origin;      // of the value
  Origin key_origin;  // of its key, where that stands elsewhere
  /// Set on the command line and in recipes: text that the declared type may read more freely ("1e3", "yes", "None").
  bool loose = false;

  friend bool operator==(const Node& a, const Node& b) { return a.value == b.value; }  // where it stands does not matter
};

inline bool Table::empty() const { return entries_.empty(); }
inline std::size_t Table::size() const { return entries_.size(); }
inline std::vector<Table::Entry>::const_iterator Table::begin() const { return entries_.begin(); }
inline std::vector<Table::Entry>::const_iterator Table::end() const { return entries_.end(); }
inline std::vector<Table::Entry>::iterator Table::begin() { return entries_.begin(); }
inline std::vector<Table::Entry>::iterator Table::end() { return entries_.end(); }

/// For messages: 3e-04 as 0.0003, 'text', [1, 2], { a = 1 }.
std::string to_text(const Node& node);
/// The same, cut where it gets long.
std::string brief(const Node& node);

/// The node at "data.datasets[0].weight" in a tree, or null.
const Node* find_node(const Table& tree, std::string_view key);

/// Lays `over` on `base`: tables merge key by key, everything else is replaced. What is replaced is kept for `config explain` by the
/// caller.
void merge(Table& base, const Table& over);

}  // namespace kf::config
