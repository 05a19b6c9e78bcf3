#pragma once
// The types of settings: whatever depends on a type is an entry of the one table in types.cpp. A new type is an entry there; here, its C++
// type.

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/schema/duration.h"
#include "config/tree/node.h"

namespace kf::config {

struct Row;

// What a row of fields.def may hold.
using Int = std::int64_t;
using Real = double;
using Bool = bool;
using Text = std::string;
using Betas = std::array<double, 2>;
using Strings = std::vector<std::string>;
using Reals = std::vector<double>;
using Ints = std::vector<Int>;
using Numbers = std::map<std::string, double>;
template <class T>
using Maybe = std::optional<T>;
template <class T>
using List = std::vector<T>;

/// What a value is, whatever its C++ type. `list`, of anything, is for fields of parts alone.
enum class Type { boolean, integer, real, duration, durations, text, pair, reals, integers, texts, list, numbers, record, records };

/// The type of a row that holds a T; structs are records.
template <class T>
inline constexpr Type kTypeOf = Type::record;
template <class T>
inline constexpr Type kTypeOf<Maybe<T>> = kTypeOf<T>;
template <class T>
inline constexpr Type kTypeOf<List<T>> = Type::records;
template <>
inline constexpr Type kTypeOf<Bool> = Type::boolean;
template <>
inline constexpr Type kTypeOf<Int> = Type::integer;
template <>
inline constexpr Type kTypeOf<Real> = Type::real;
template <>
inline constexpr Type kTypeOf<Duration> = Type::duration;
template <>
inline constexpr Type kTypeOf<Durations> = Type::durations;
template <>
inline constexpr Type kTypeOf<Text> = Type::text;
template <>
inline constexpr Type kTypeOf<Betas> = Type::pair;
template <>
inline constexpr Type kTypeOf<Reals> = Type::reals;
template <>
inline constexpr Type kTypeOf<Ints> = Type::integers;
template <>
inline constexpr Type kTypeOf<Strings> = Type::texts;
template <>
inline constexpr Type kTypeOf<Numbers> = Type::numbers;

// C++ values to nodes and back. A node given to `from_node` has exactly the type. (Those of records are made from fields.def in
// schema.cpp.)
Node to_node(bool value);
Node to_node(Int value);
Node to_node(Real value);
Node to_node(const Duration& value);
Node to_node(const Durations& value);
Node to_node(const Text& value);
Node to_node(const Betas& value);
Node to_node(const Numbers& value);
template <class T>
Node to_node(const Maybe<T>& value);
template <class T>
Node to_node(const List<T>& value);
void from_node(const Node& node, bool& out);
void from_node(const Node& node, Int& out);
void from_node(const Node& node, Real& out);
void from_node(const Node& node, Duration& out);
void from_node(const Node& node, Durations& out);
void from_node(const Node& node, Text& out);
void from_node(const Node& node, Betas& out);
void from_node(const Node& node, Numbers& out);
template <class T>
void from_node(const Node& node, Maybe<T>& out);
template <class T>
void from_node(const Node& node, List<T>& out);

template <class T>
Node to_node(const Maybe<T>& value) {
  return value ? to_node(*value) : Node();
}
template <class T>
Node to_node(const List<T>& value) {
  Array out;
  for (const T& item : value) {
    out.push_back(to_node(item));
  }
  return Node(std::move(out));
}
template <class T>
void from_node(const Node& node, Maybe<T>& out) {
  if (node.is_null()) {
    out.reset();
  } else {
    from_node(node, out.emplace());
  }
}
template <class T>
void from_node(const Node& node, List<T>& out) {
  out.clear();
  for (const Node& item : std::get<Array>(node.value)) {
    from_node(item, out.emplace_back());
  }
}

/// Who reads settings: where the faults of values go, and what a type does not know by itself.
class Reading {
 public:
  virtual ~Reading() = default;
  /// The value of `key` cannot be used: "KEY (VALUE) WORDS".
  virtual void fault(const std::string& key, const Node& node, const std::string& words) = 0;
  /// Nor can that of `key`, for faults of its items.
  virtual void give_up(const std::string& key) = 0;
  /// A table of fields, each in its type, defaults filled in.
  virtual Table fields(const Table& table, const Origin& origin, const std::vector<Row>& rows, const std::string& key) = 0;
  /// Whether a text is one of the row's choices or registered names; where not, that is a fault.
  virtual bool check_text(const Node& text, const Row& row, const std::string& key) = 0;
};

/// What a JSON schema needs to know beside the row.
struct SchemaContext {
  std::function<std::vector<std::string>(const std::string& kind)> names;  // of registered parts
  std::function<Node(const std::vector<Row>& fields)> table;
};

/// What a row's check may hold for values of a type.
enum class Checked { nothing, bounds, choices };

/// All there is to know of a type.
struct TypeRow {
  Type type;
  std::string_view name;       // for people: "list of strings"
  std::string_view word = {};  // in the fields of a part that a script registers: "int"; empty where these have no such type
  Checked checked;
  /// From a node, however it was written, to one of exactly this type; nothing, and a fault, where it does not fit.
  std::optional<Node> (*convert)(const Node& node, const Row& row, const std::string& key, Reading& reading);
  /// Bounds, choices and registered names of a converted node; a fault where they do not hold.
  bool (*check)(const Node& node, const Row& row, const std::string& key, Reading& reading);
  Node (*schema)(const Row& row, const SchemaContext& context);
  std::string_view lua;                             // in the words of lua-language-server, where they do not depend on the row
  std::string (*lua_of)(const Row& row) = nullptr;  // where they do
  Node (*in_script)(const Node& value) = nullptr;   // how scripts see a value; null: as it is
  /// A value in a script's declaration, as it stands; nothing where it is not of this type. Null for types without a word.
  std::optional<Node> (*literal)(const Node& value) = nullptr;
  bool flag = false;    // --KEY alone says true
  bool tables = false;  // several tables, [[KEY]]
};

const TypeRow& type_row(Type type);
/// The type that scripts call `word`, or null.
const TypeRow* type_of_word(std::string_view word);
/// "int", "float", ...
std::vector<std::string> type_words();

/// "an integer", "a list of strings", "steps or share".
std::string with_article(std::string_view noun);
/// The class of a record's fields in Lua: "kf.Config.checkpoint.dyn_ckpt_window".
std::string lua_class(const Row& row);
std::string lua_type(const Row& row);

}  // namespace kf::config
