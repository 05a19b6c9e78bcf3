#pragma once
// Values of templates, as Jinja (Python) has them, with one addition: text knows, byte by byte, what wrote it.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace kf::jinja {

/// What wrote a byte: 0 the template itself, else whatever part of the data its caller gave that number (a message of a chat).
using Origin = char16_t;

/// Text and its origins, one a byte.
struct Text {
  std::string bytes;
  std::u16string from;

  Text() = default;
  explicit Text(std::string text, Origin origin = 0) : bytes(std::move(text)), from(bytes.size(), origin) {}
  void append(const Text& other) {
    bytes += other.bytes;
    from += other.from;
  }
  void append(std::string_view text, Origin origin) {
    bytes += text;
    from.append(text.size(), origin);
  }
  Text part(std::size_t begin, std::size_t end) const;
  bool empty() const { return bytes.empty(); }
  std::size_t size() const { return bytes.size(); }
};

class Value;
using List = std::vector<Value>;
using Pair = std::pair<Value, Value>;
struct Dict;

/// Arguments of a call.
struct Arguments {
  std::vector<Value> values;
  std::vector<std::pair<std::string, Value>> named;

  /// The argument at `place` or of that name; null where neither is given.
  const Value* find(std::size_t place, std::string_view name) const;
};

/// What can be called: a macro, a function of the environment, a method with its object.
struct Function {
  std::string name;
  std::function<Value(const Arguments&)> call;
};

struct Undefined {
  std::string name;  // for messages
};
struct None {};

class Value {
 public:
  Value() : value_(Undefined{}) {}
  Value(Undefined value) : value_(std::move(value)) {}
  Value(None) : value_(None{}) {}
  Value(bool value) : value_(value) {}
  Value(const char*) = delete;  // would be a boolean: Value::text
  Value(std::int64_t value) : value_(value) {}
  Value(double value) : value_(value) {}
  Value(Text value) : value_(std::make_shared<const Text>(std::move(value))) {}
  Value(List value) : value_(std::make_shared<List>(std::move(value))) {}
  Value(Dict value);
  Value(Function value) : value_(std::make_shared<const Function>(std::move(value))) {}
  static Value text(std::string_view bytes, Origin origin = 0) { return Text(std::string(bytes), origin); }

  bool is_undefined() const { return std::holds_alternative<Undefined>(value_); }
  bool is_none() const { return std::holds_alternative<None>(value_); }
  bool is_number() const { return integer() != nullptr || real() != nullptr || boolean() != nullptr; }
  const Undefined* undefined() const { return std::get_if<Undefined>(&value_); }
  const bool* boolean() const { return std::get_if<bool>(&value_); }
  const std::int64_t* integer() const { return std::get_if<std::int64_t>(&value_); }
  const double* real() const { return std::get_if<double>(&value_); }
  const Text* text() const { return shared<const Text>(); }
  const List* list() const { return shared<List>(); }
  List* list() { return const_cast<List*>(shared<List>()); }
  const Dict* dict() const { return shared<Dict>(); }
  Dict* dict() { return const_cast<Dict*>(shared<Dict>()); }
  const Function* function() const { return shared<const Function>(); }

  /// As Python's bool().
  bool truth() const;
  /// The number; of true and false 1 and 0. `is_number` holds.
  double number() const;
  /// As Python's int where it is one: true is 1. Nothing for others.
  const std::int64_t* whole(std::int64_t& room) const;
  /// "a string", "undefined": for messages.
  std::string kind() const;

 private:
  template <class T>
  const T* shared() const {
    const auto* const held = std::get_if<std::shared_ptr<T>>(&value_);
    return held == nullptr ? nullptr : held->get();
  }
  std::variant<Undefined, None, bool, std::int64_t, double, std::shared_ptr<const Text>, std::shared_ptr<List>, std::shared_ptr<Dict>,
               std::shared_ptr<const Function>>
      value_;
};

/// Keeps the order of its keys. `fixed`: values are set from templates in a namespace() only.
struct Dict {
  std::vector<Pair> items;
  bool fixed = true;

  const Value* find(std::string_view key) const;
  const Value* at(const Value& key) const;
  void set(const Value& key, Value value);
  void put(std::string_view key, Value value) { set(Value::text(key), std::move(value)); }
};

bool equal(const Value& a, const Value& b);
/// -1, 0 or 1. Throws Code::data for kinds that have no order.
int compare(const Value& a, const Value& b);
/// Whether `container` holds `item`, as Python's `in`.
bool contains(const Value& container, const Value& item);
/// What a loop runs over: items of a list, keys of a dict, characters of a text, nothing of undefined. Throws Code::data for others.
List items_of(const Value& value);

/// As str() of Python: what {{ }} puts out.
Text printed(const Value& value);
/// As json.dumps(ensure_ascii=False) of Python.
struct JsonStyle {
  std::int64_t indent = -1;  // below 0: one line
  std::string item = ", ";   // between items, and
  std::string key = ": ";    // behind keys
  bool sorted = false;
  bool ascii = false;
};
Text json_text(const Value& value, const JsonStyle& style);
/// The shortest decimal that reads back, as Python writes it: 1.0, 1e+16.
std::string number_text(double value);

/// Borders of the characters of UTF-8: the start of each, and the end. Bytes that are no UTF-8 are characters of their own.
std::vector<std::size_t> characters(std::string_view text);

}  // namespace kf::jinja
