#include "config/schema/schema.h"

#include <algorithm>
#include <functional>
#include <map>
#include <type_traits>
#include <utility>

namespace kf::config {

// Records to nodes and back. The templates of types.h find these by their arguments, and so in no unnamed namespace.

#define KF_NO_SECTIONS
#define RECORD(Type, doc)                   \
  static Node to_node(const Type& record) { \
    Table out;
#define FIELD(type, name, fallback, check, doc) out[#name] = to_node(record.name);
#define END(Type)              \
  return Node(std::move(out)); \
  }
#include "config/schema/fields.def"

// NOLINTBEGIN(bugprone-macro-parentheses): Type is a type
#define KF_NO_SECTIONS
#define RECORD(Type, doc)                                 \
  static void from_node(const Node& node, Type& record) { \
    const Table& in = std::get<Table>(node.value);
// NOLINTEND(bugprone-macro-parentheses)
#define FIELD(type, name, fallback, check, doc) from_node(*in.find(#name), record.name);
#define END(Type) }
#include "config/schema/fields.def"

namespace {

// The rows of records, from the C++ type.

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

template <class T>
struct Item {  // T of List<T> and of Maybe<T>
  using type = T;
};
template <class T>
struct Item<List<T>> {
  using type = T;
};
template <class T>
struct Item<Maybe<T>> : Item<T> {};

template <class T>
Row make_row(std::string name, const T& fallback, Check check, std::string doc) {
  Row row = value_row<T>(std::move(name), fallback, std::move(check), std::move(doc));
  row.fields = record_rows(Of<typename Item<T>::type>());
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

}  // namespace

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
  static const std::map<std::string, const Row*, std::less<>> by_key = [] {  // rules ask for hundreds
    std::map<std::string, const Row*, std::less<>> out;
    for (const Row& row : rows()) {
      out.emplace(row.key(), &row);
    }
    return out;
  }();
  const auto found = by_key.find(key);
  return found == by_key.end() ? nullptr : found->second;
}

bool is_section(std::string_view name) {
  return std::any_of(sections().begin(), sections().end(), [name](const Section& section) { return section.name == name; });
}

}  // namespace kf::config
