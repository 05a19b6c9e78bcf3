// The table of types stands at the end: each entry is made of the few forms above it.

#include "config/schema/types.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <utility>

#include "config/schema/read_value.h"
#include "config/schema/row.h"
#include "config/tree/literal.h"
#include "config/tree/make.h"
#include "core/text.h"

namespace kf::config {
namespace {

// --- reading ---

using Read = ReadValue (*)(const Node&);

template <Read read>
std::optional<Node> one(const Node& node, const Row& row, const std::string& key, Reading& reading) {
  ReadValue value = read(node);
  if (!value.node) {  // shuffle = false, of a choice: quotes alone would not help
    reading.fault(key, node, row.check.choices.empty() ? value.words : row.check.words());
  }
  return std::move(value.node);
}

template <Read read>
std::optional<Node> items(const Array& given, const std::string& key, Reading& reading) {
  Array out;
  for (std::size_t i = 0; i < given.size(); ++i) {
    ReadValue value = read(given[i]);
    if (!value.node) {
      reading.fault(format("{}[{}]", key, i), given[i], value.words);
      continue;
    }
    out.push_back(std::move(*value.node));
    out.back().origin = given[i].origin;
  }
  if (out.size() < given.size()) {
    reading.give_up(key);
    return std::nullopt;
  }
  return Node(std::move(out));
}

/// What is written as a list; nothing where it is none. Lua's {} is an empty table.
std::optional<Array> written_items(const Node& node) {
  if (node.array()) {
    return *node.array();
  }
  if (node.table() && node.table()->empty()) {
    return Array();
  }
  const std::string* const text = loose_text(node);
  const bool commas = text != nullptr && text->find(',') != std::string::npos && node.origin.text == *text;
  return commas ? parse_bare_list(*text, node.origin) : std::nullopt;
}

std::nullopt_t no_list(const Node& node, const Row& row, const std::string& key, Reading& reading) {
  reading.fault(key, node, "is not " + with_article(type_row(row.type).name));
  return std::nullopt;
}

/// A list; a value alone is the list of it.
template <Read read>
std::optional<Node> list(const Node& node, const Row& row, const std::string& key, Reading& reading) {
  std::optional<Array> given = written_items(node);
  if (!given && !node.table()) {
    given = Array{node};
  }
  return given ? items<read>(*given, key, reading) : no_list(node, row, key, reading);
}

std::optional<Node> one_or_list(const Node& node, const Row& row, const std::string& key, Reading& reading) {
  const std::string* const text = loose_text(node);
  if (!node.array() && !(text != nullptr && text->find(',') != std::string::npos)) {
    return one<read_duration>(node, row, key, reading);
  }
  const std::optional<Array> given = written_items(node);
  return given ? items<read_duration>(*given, key, reading) : no_list(node, row, key, reading);
}

std::optional<Node> pair(const Node& node, const Row&, const std::string& key, Reading& reading) {
  const std::optional<Array> given = written_items(node);
  if (!given || given->size() != 2) {
    reading.fault(key, node, given ? "needs two values, like [0.9, 0.95]" : "is not a pair of numbers; write two, like [0.9, 0.95]");
    return std::nullopt;
  }
  return items<read_real>(*given, key, reading);
}

/// A table, as which Lua's {} may have become a list; null, and a fault, where it is none.
std::optional<Table> written_table(const Node& node, const std::string& key, Reading& reading) {
  if (node.array() && node.array()->empty()) {
    return Table();
  }
  if (!node.table()) {
    reading.fault(key, node, "is not a table");
    return std::nullopt;
  }
  return *node.table();
}

std::optional<Node> numbers(const Node& node, const Row&, const std::string& key, Reading& reading) {
  const std::optional<Table> given = written_table(node, key, reading);
  if (!given) {
    return std::nullopt;
  }
  Table out;
  for (const auto& [name, item] : *given) {
    ReadValue value = read_real(item);
    if (!value.node) {
      reading.fault(key + "." + name, item, value.words);
      continue;
    }
    value.node->origin = item.origin;
    out[name] = std::move(*value.node);
  }
  if (out.size() < given->size()) {
    reading.give_up(key);
    return std::nullopt;
  }
  return Node(std::move(out));
}

std::optional<Node> record(const Node& node, const Row& row, const std::string& key, Reading& reading) {
  const std::optional<Table> given = written_table(node, key, reading);
  return given ? std::optional(Node(reading.fields(*given, node.origin, row.fields, key))) : std::nullopt;
}

std::optional<Node> records(const Node& node, const Row& row, const std::string& key, Reading& reading) {
  std::optional<Array> given = written_items(node);
  if (!given && node.table()) {
    given = Array{node};
  }
  if (!given) {
    return no_list(node, row, key, reading);
  }
  Array out;
  for (std::size_t i = 0; i < given->size(); ++i) {
    const Node& item = (*given)[i];
    const std::string name = format("{}[{}]", key, i);
    if (!item.table()) {
      reading.fault(name, item, "is not a table");
      continue;
    }
    out.emplace_back(reading.fields(*item.table(), item.origin, row.fields, name), item.origin);
  }
  if (out.size() < given->size()) {
    reading.give_up(key);
    return std::nullopt;
  }
  return Node(std::move(out));
}

// --- checks ---

bool unchecked(const Node&, const Row&, const std::string&, Reading&) { return true; }

bool check_number(const Node& node, const Row& row, const std::string& key, Reading& reading) {
  const auto* const whole = std::get_if<Int>(&node.value);
  const double value = whole != nullptr ? static_cast<double>(*whole) : std::get<double>(node.value);
  if ((!row.check.min && !row.check.max) || row.check.holds(value)) {
    return true;
  }
  reading.fault(key, node, row.check.words() + (std::isinf(value) && !row.check.infinite ? " and finite" : ""));
  return false;
}

bool check_numbers(const Node& node, const Row& row, const std::string& key, Reading& reading) {
  if (!node.array()) {
    return check_number(node, row, key, reading);
  }
  bool fine = true;
  for (std::size_t i = 0; i < node.array()->size(); ++i) {
    fine = check_number((*node.array())[i], row, format("{}[{}]", key, i), reading) && fine;
  }
  return fine;
}

bool check_table(const Node& node, const Row& row, const std::string& key, Reading& reading) {
  bool fine = true;
  for (const auto& [name, item] : *node.table()) {
    fine = check_number(item, row, key + "." + name, reading) && fine;
  }
  return fine;
}

bool check_text(const Node& node, const Row& row, const std::string& key, Reading& reading) { return reading.check_text(node, row, key); }

bool check_texts(const Node& node, const Row& row, const std::string& key, Reading& reading) {
  bool fine = true;
  for (const Node& item : *node.array()) {
    fine = reading.check_text(item, row, key) && fine;
  }
  return fine;
}

// --- JSON schemas ---

using Schema = Node (*)(const Row&, const SchemaContext&);

Node boolean_schema(const Row&, const SchemaContext&) { return make_table({{"type", make_text("boolean")}}); }
Node any_list_schema(const Row&, const SchemaContext&) { return make_table({{"type", make_text("array")}}); }

Node number_schema(const Check& check, const char* type) {
  Node out = make_table({{"type", make_text(type)}});
  if (check.min) {
    (*out.table())[check.above_min ? "exclusiveMinimum" : "minimum"] = Node(check.automatic ? -1.0 : *check.min);
  }
  if (check.max) {
    (*out.table())[check.below_max ? "exclusiveMaximum" : "maximum"] = Node(*check.max);
  }
  return out;
}

Node integer_schema(const Row& row, const SchemaContext&) { return number_schema(row.check, "integer"); }
Node real_schema(const Row& row, const SchemaContext&) { return number_schema(row.check, "number"); }

Node text_schema(const Row& row, const SchemaContext& context) {
  const Check& check = row.check;
  Node any_text = make_table({{"type", make_text("string")}});
  if (!check.choices.empty()) {
    return make_table({{"type", make_text("string")}, {"enum", make_texts(check.choices)}});
  }
  const std::vector<std::string> names = check.kind.empty() ? std::vector<std::string>() : context.names(check.kind);
  if (names.empty()) {
    return any_text;
  }
  return make_table({{"anyOf", Node(Array{make_table({{"type", make_text("string")}, {"enum", make_texts(names)}}), any_text})}});
}

Node record_schema(const Row& row, const SchemaContext& context) { return context.table(row.fields); }

template <Schema item>
Node list_schema(const Row& row, const SchemaContext& context) {
  return make_table({{"type", make_text("array")}, {"items", item(row, context)}});
}

Node pair_schema(const Row& row, const SchemaContext& context) {
  Node out = list_schema<real_schema>(row, context);
  (*out.table())["minItems"] = (*out.table())["maxItems"] = Node(std::int64_t{2});
  return out;
}

Node one_or_list_schema(const Row& row, const SchemaContext& context) {
  return make_table({{"anyOf", Node(Array{real_schema(row, context), list_schema<real_schema>(row, context)})}});
}

Node numbers_schema(const Row& row, const SchemaContext& context) {
  return make_table({{"type", make_text("object")}, {"additionalProperties", real_schema(row, context)}});
}

// --- in scripts ---

std::string choices(const Row& row) {
  std::vector<std::string> words;
  for (const std::string& choice : row.check.choices) {
    words.push_back(kf::quoted(choice));
  }
  return words.empty() ? "string" : join(words, "|");
}

std::string lua_classes(const Row& row) { return lua_class(row) + "[]"; }

/// Lua has one type of number: the whole schedule as a share is the text "1.0" (arithmetic takes it as 1), which reads back as it was; the
/// number 1 would be one step.
Node whole_as_text(const Node& duration) {
  const double* const share = std::get_if<double>(&duration.value);
  return share != nullptr && *share == 1 ? Node(std::string("1.0")) : duration;
}

Node each_whole_as_text(const Node& durations) {
  if (!durations.array()) {
    return whole_as_text(durations);
  }
  Array out;
  std::transform(durations.array()->begin(), durations.array()->end(), std::back_inserter(out), whole_as_text);
  return Node(std::move(out));
}

template <class T>
std::optional<Node> literal(const Node& value) {
  return std::holds_alternative<T>(value.value) ? std::optional(value) : std::nullopt;
}

std::optional<Node> literal_real(const Node& value) {
  const auto* const whole = std::get_if<Int>(&value.value);
  return whole != nullptr ? std::optional(Node(static_cast<double>(*whole), value.origin)) : literal<Real>(value);
}

std::optional<Node> literal_list(const Node& value) {
  return value.table() && value.table()->empty() ? std::optional(Node(Array())) : literal<Array>(value);
}

// clang-format off
constexpr std::array kTypes{
    TypeRow{.type = Type::boolean, .name = "boolean", .word = "bool", .checked = Checked::nothing, .convert = one<read_boolean>,
            .check = unchecked, .schema = boolean_schema, .lua = "boolean", .literal = literal<bool>, .flag = true},
    TypeRow{.type = Type::integer, .name = "integer", .word = "int", .checked = Checked::bounds, .convert = one<read_integer>,
            .check = check_number, .schema = integer_schema, .lua = "integer", .literal = literal<Int>},
    TypeRow{.type = Type::real, .name = "number", .word = "float", .checked = Checked::bounds, .convert = one<read_real>,
            .check = check_number, .schema = real_schema, .lua = "number", .literal = literal_real},
    TypeRow{.type = Type::duration, .name = "steps or share", .checked = Checked::bounds, .convert = one<read_duration>,
            .check = check_number, .schema = real_schema, .lua = "number", .in_script = whole_as_text},
    TypeRow{.type = Type::durations, .name = "steps or share, or a list of them", .checked = Checked::bounds, .convert = one_or_list,
            .check = check_numbers, .schema = one_or_list_schema, .lua = "number|number[]", .in_script = each_whole_as_text},
    TypeRow{.type = Type::text, .name = "string", .word = "string", .checked = Checked::choices, .convert = one<read_text>,
            .check = check_text, .schema = text_schema, .lua = {}, .lua_of = choices, .literal = literal<Text>},
    TypeRow{.type = Type::pair, .name = "pair of numbers", .checked = Checked::bounds, .convert = pair,
            .check = check_numbers, .schema = pair_schema, .lua = "number[]"},
    TypeRow{.type = Type::reals, .name = "list of numbers", .checked = Checked::bounds, .convert = list<read_real>,
            .check = check_numbers, .schema = list_schema<real_schema>, .lua = "number[]"},
    TypeRow{.type = Type::integers, .name = "list of integers", .checked = Checked::bounds, .convert = list<read_integer>,
            .check = check_numbers, .schema = list_schema<integer_schema>, .lua = "integer[]"},
    TypeRow{.type = Type::texts, .name = "list of strings", .checked = Checked::choices, .convert = list<read_text>,
            .check = check_texts, .schema = list_schema<text_schema>, .lua = "string[]"},
    TypeRow{.type = Type::list, .name = "list", .word = "list", .checked = Checked::nothing, .convert = list<read_any>,
            .check = unchecked, .schema = any_list_schema, .lua = "any[]", .literal = literal_list},
    TypeRow{.type = Type::numbers, .name = "table of numbers", .checked = Checked::bounds, .convert = numbers,
            .check = check_table, .schema = numbers_schema, .lua = "table<string, number>"},
    TypeRow{.type = Type::record, .name = "table", .checked = Checked::nothing, .convert = record,
            .check = unchecked, .schema = record_schema, .lua = {}, .lua_of = lua_class},
    TypeRow{.type = Type::records, .name = "list of tables", .checked = Checked::nothing, .convert = records,
            .check = unchecked, .schema = list_schema<record_schema>, .lua = {}, .lua_of = lua_classes, .tables = true},
};
// clang-format on

constexpr bool in_order() {
  for (std::size_t i = 0; i < kTypes.size(); ++i) {
    if (kTypes[i].type != static_cast<Type>(i)) {
      return false;
    }
  }
  return true;
}
static_assert(in_order() && kTypes.size() == static_cast<std::size_t>(Type::records) + 1);

}  // namespace

const TypeRow& type_row(Type type) { return kTypes[static_cast<std::size_t>(type)]; }

const TypeRow* type_of_word(std::string_view word) {
  const auto found = std::find_if(kTypes.begin(), kTypes.end(), [word](const TypeRow& row) { return row.word == word && !word.empty(); });
  return found == kTypes.end() ? nullptr : &*found;
}

std::vector<std::string> type_words() {
  std::vector<std::string> out;
  for (const TypeRow& row : kTypes) {
    if (!row.word.empty()) {
      out.emplace_back(row.word);
    }
  }
  return out;
}

std::string with_article(std::string_view noun) {
  const char* const article = noun.starts_with("steps") ? "" : noun.starts_with("integer") ? "an " : "a ";
  return article + std::string(noun);
}

std::string lua_class(const Row& row) { return "kf.Config." + (row.section.empty() ? "" : row.section + ".") + row.name; }

std::string lua_type(const Row& row) {
  const TypeRow& type = type_row(row.type);
  return type.lua_of != nullptr ? type.lua_of(row) : std::string(type.lua);
}

// --- C++ values to nodes and back ---

Node to_node(bool value) { return Node(value); }
Node to_node(Int value) { return Node(value); }
Node to_node(Real value) { return Node(value); }
Node to_node(const Duration& value) { return value.is_share() ? Node(value.share()) : Node(value.steps()); }
Node to_node(const Durations& value) { return value.is_list() ? to_node(value.items()) : to_node(value.one()); }
Node to_node(const Text& value) { return Node(value); }
Node to_node(const Betas& value) { return Node(Array{Node(value[0]), Node(value[1])}); }
Node to_node(const Numbers& value) {
  Table out;
  for (const auto& [name, number] : value) {
    out[name] = Node(number);
  }
  return Node(std::move(out));
}

void from_node(const Node& node, bool& out) { out = std::get<bool>(node.value); }
void from_node(const Node& node, Int& out) { out = std::get<Int>(node.value); }
void from_node(const Node& node, Real& out) { out = std::get<Real>(node.value); }
void from_node(const Node& node, Duration& out) {
  const double* const share = std::get_if<double>(&node.value);
  out = share ? Duration::of_share(*share) : Duration(std::get<Int>(node.value));
}
void from_node(const Node& node, Durations& out) {
  if (node.array()) {
    std::vector<Duration> items;
    from_node(node, items);
    out = Durations(std::move(items));
  } else {
    Duration one;
    from_node(node, one);
    out = one;
  }
}
void from_node(const Node& node, Text& out) { out = std::get<Text>(node.value); }
void from_node(const Node& node, Betas& out) {
  const Array& pair = std::get<Array>(node.value);
  out = {std::get<Real>(pair.at(0).value), std::get<Real>(pair.at(1).value)};
}
void from_node(const Node& node, Numbers& out) {
  out.clear();
  for (const auto& [name, number] : std::get<Table>(node.value)) {
    out[name] = std::get<Real>(number.value);
  }
}

}  // namespace kf::config
