#include "config/schema/schema.h"

#include <algorithm>
#include <type_traits>
#include <utility>

namespace kf::config {
namespace {

// C++ values to nodes and back. A node given to `from_node` already has exactly the row's type.

Node to_node(bool value) { return Node(value); }
Node to_node(Int value) { return Node(value); }
Node to_node(Real value) { return Node(value); }
Node to_node(const Duration& value) { return value.is_share() ? Node(value.share()) : Node(value.steps()); }
Node to_node(const Durations& value) {
  if (!value.is_list()) {
    return to_node(value.one());
  }
  Array out;
  for (const Duration& item : value.items()) {
    out.push_back(to_node(item));
  }
  return Node(std::move(out));
}
Node to_node(const Text& value) { return Node(value); }
Node to_node(const Betas& value) { return Node(Array{Node(value[0]), Node(value[1])}); }
Node to_node(const Numbers& value) {
  Table out;
  for (const auto& [name, number] : value) {
    out[name] = Node(number);
  }
  return Node(std::move(out));
}
template <class T>
Node to_node(const Maybe<T>& value);
template <class T>
Node to_node(const List<T>& value);

void from_node(const Node& node, bool& out) { out = std::get<bool>(node.value); }
void from_node(const Node& node, Int& out) { out = std::get<Int>(node.value); }
void from_node(const Node& node, Real& out) { out = std::get<Real>(node.value); }
void from_node(const Node& node, Duration& out) {
  const double* const share = std::get_if<double>(&node.value);
  out = share ? Duration::of_share(*share) : Duration(std::get<Int>(node.value));
}
void from_node(const Node& node, Durations& out) {
  const Array* const list = node.array();
  if (list == nullptr) {
    Duration one;
    from_node(node, one);
    out = one;
    return;
  }
  std::vector<Duration> items(list->size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    from_node((*list)[i], items[i]);
  }
  out = Durations(std::move(items));
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
template <class T>
void from_node(const Node& node, Maybe<T>& out);
template <class T>
void from_node(const Node& node, List<T>& out);

#define KF_NO_SECTIONS
#define RECORD(Type, doc)            \
  Node to_node(const Type& record) { \
    Table out;
#define FIELD(type, name, fallback, check, doc) out[#name] = to_node(record.name);
#define END(Type)              \
  return Node(std::move(out)); \
  }
#include "config/schema/fields.def"

// NOLINTBEGIN(bugprone-macro-parentheses): Type is a type
#define KF_NO_SECTIONS
#define RECORD(Type, doc)                          \
  void from_node(const Node& node, Type& record) { \
    const Table& in = std::get<Table>(node.value);
// NOLINTEND(bugprone-macro-parentheses)
#define FIELD(type, name, fallback, check, doc) from_node(*in.find(#name), record.name);
#define END(Type) }
#include "config/schema/fields.def"

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

// The type of a row, and the rows of its records, from the C++ type.

template <class T>
struct Of {};

template <class T>
std::vector<Row> record_rows(Of<T>) {
  return {};
}

template <class T>
Row make_row(std::string name, const T& fallback, Check check, std::string doc);

#define KF_NO_SECTIONS
#define RECORD(Type, doc)                  \
  std::vector<Row> record_rows(Of<Type>) { \
    std::vector<Row> out;
#define FIELD(type, name, fallback, check, doc) out.push_back(make_row<type>(#name, fallback, check, doc));
#define END(Type) \
  return out;     \
  }
#include "config/schema/fields.def"

constexpr Type type_of(Of<Bool>) { return Type::boolean; }
constexpr Type type_of(Of<Int>) { return Type::integer; }
constexpr Type type_of(Of<Real>) { return Type::real; }
constexpr Type type_of(Of<Duration>) { return Type::duration; }
constexpr Type type_of(Of<Durations>) { return Type::durations; }
constexpr Type type_of(Of<Text>) { return Type::text; }
constexpr Type type_of(Of<Betas>) { return Type::pair; }
constexpr Type type_of(Of<Reals>) { return Type::reals; }
constexpr Type type_of(Of<Ints>) { return Type::integers; }
constexpr Type type_of(Of<Strings>) { return Type::texts; }
constexpr Type type_of(Of<Numbers>) { return Type::numbers; }
template <class T>
constexpr Type type_of(Of<T>) {
  return Type::record;
}
template <class T>
constexpr Type type_of(Of<List<T>>) {
  return Type::records;
}

template <class T>
struct Inner {  // T of Maybe<T>
  using type = T;
};
template <class T>
struct Inner<Maybe<T>> {
  using type = T;
};
template <class T>
struct Item {  // T of List<T>
  using type = T;
};
template <class T>
struct Item<List<T>> {
  using type = T;
};

template <class T>
Row make_row(std::string name, const T& fallback, Check check, std::string doc) {
  using Value = typename Inner<T>::type;
  Row row;
  row.name = std::move(name);
  row.type = type_of(Of<Value>());
  row.optional = !std::is_same_v<T, Value>;
  row.fallback = to_node(fallback);
  row.check = std::move(check);
  row.doc = std::move(doc);
  row.fields = record_rows(Of<typename Item<Value>::type>());
  return row;
}

// The way from a row to its member, as plain functions: closures in std::function took a minute to compile.

template <auto section, auto member>
Node get_field(const Config& config) {
  return to_node(config.*section.*member);
}
template <auto section, auto member>
void set_field(Config& config, const Node& node) {
  from_node(node, config.*section.*member);
}
template <auto member>
Node get_top(const Config& config) {
  return to_node(config.*member);
}
template <auto member>
void set_top(Config& config, const Node& node) {
  from_node(node, config.*member);
}

Row placed(const char* section, Row row, Node (*get)(const Config&), void (*set)(Config&, const Node&)) {
  row.section = section;
  row.get = get;
  row.set = set;
  return row;
}

// A function for each section: one for all rows is more than optimizers like.
#define KF_NO_RECORDS
#define TABLE(Type, member, doc)                                                \
  void add_rows(std::vector<Row>& out, const Type* self) {                      \
    using Section = std::remove_const_t<std::remove_pointer_t<decltype(self)>>; \
    constexpr auto section = &Config::member;                                   \
    const char* const section_name = #member;
#define FIELD(type, name, fallback, check, doc)                                                                        \
  out.push_back(placed(section_name, make_row<type>(#name, fallback, check, doc), &get_field<section, &Section::name>, \
                       &set_field<section, &Section::name>));
#define END(Type) }
#include "config/schema/fields.def"

std::vector<Row> make_rows() {
  std::vector<Row> out;
#define KF_NO_RECORDS
#define TABLE(Type, member, doc) add_rows(out, static_cast<const Type*>(nullptr));
#define TOP(type, name, fallback, check, doc) \
  out.push_back(placed("", make_row<type>(#name, fallback, check, doc), &get_top<&Config::name>, &set_top<&Config::name>));
#include "config/schema/fields.def"
  return out;
}

Type type_of(PartField::Type type) {
  switch (type) {
    case PartField::Type::integer: return Type::integer;
    case PartField::Type::real: return Type::real;
    case PartField::Type::boolean: return Type::boolean;
    case PartField::Type::string: return Type::text;
    case PartField::Type::list: return Type::list;
  }
  return Type::text;
}

}  // namespace

std::string type_name(Type type) {
  switch (type) {
    case Type::boolean: return "boolean";
    case Type::integer: return "integer";
    case Type::real: return "number";
    case Type::duration: return "steps or share";
    case Type::durations: return "steps or share, or a list of them";
    case Type::text: return "string";
    case Type::pair: return "pair of numbers";
    case Type::reals: return "list of numbers";
    case Type::integers: return "list of integers";
    case Type::texts: return "list of strings";
    case Type::list: return "list";
    case Type::numbers: return "table of numbers";
    case Type::record: return "table";
    case Type::records: return "list of tables";
  }
  return "";
}

const std::vector<Section>& sections() {
  static const std::vector<Section> all{
#define KF_NO_RECORDS
#define TABLE(Type, member, doc) {#member, doc},
#include "config/schema/fields.def"
  };
  return all;
}

const std::vector<Row>& rows() {
  static const std::vector<Row> all = make_rows();
  return all;
}

const Row* find_row(std::string_view key) {
  const auto found = std::find_if(rows().begin(), rows().end(), [key](const Row& row) { return row.key() == key; });
  return found == rows().end() ? nullptr : &*found;
}

bool is_section(std::string_view name) {
  return std::any_of(sections().begin(), sections().end(), [name](const Section& section) { return section.name == name; });
}

std::vector<Row> part_rows(const PartInfo& part) {
  std::vector<Row> out;
  for (const PartField& field : part.fields) {
    Row row;
    row.name = field.name;
    row.type = type_of(field.type);
    row.required = !field.fallback;
    row.fallback = field.fallback.value_or(Node());
    row.check.min = field.min;
    row.check.max = field.max;
    row.check.choices = field.choices;
    row.doc = field.doc;
    out.push_back(std::move(row));
  }
  return out;
}

}  // namespace kf::config
