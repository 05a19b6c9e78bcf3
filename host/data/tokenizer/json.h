#pragma once
// JSON of tokenizer files: hundreds of thousands of small values, read quickly, with places for error messages.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kf::json {

class Value {
 public:
  enum class Type { null, boolean, number, string, array, object };
  struct Member;

  Type type = Type::null;
  bool boolean = false;
  double number = 0;
  bool integral = false;  // written without point and exponent
  std::string text;
  std::vector<Value> items;
  std::vector<Member> members;  // in the file's order, repeated names too

  bool is_null() const { return type == Type::null; }
  /// The last member of this name, null where there is none (or this is no object).
  const Value* find(std::string_view name) const;
};

struct Value::Member {
  std::string first;
  Value second;
};

/// "null", "a string", "an object", ...
const char* type_name(Value::Type type);

/// Strict JSON; lone surrogates in \u escapes become U+FFFD, bytes that are no UTF-8 stay. Throws Code::data with `name`, line and column.
Value parse(std::string_view text, const std::string& name);
/// One string with nothing around it but blanks.
std::string parse_string(std::string_view text, const std::string& name);

/// `text` in quotes; bytes that are no UTF-8 become U+FFFD.
std::string quote(std::string_view text);

/// A value and the way to it, for messages: "tokenizer.json: model.merges[17]".
class Place {
 public:
  Place(const Value& value, std::string path) : value_(&value), path_(std::move(path)) {}

  const Value& operator*() const { return *value_; }
  const Value* operator->() const { return value_; }
  const std::string& path() const { return path_; }
  std::string path(std::string_view member) const;

  bool has(std::string_view name) const;  // present and not null
  Place at(std::string_view name) const;  // a member that must be there
  Place at(std::size_t index) const;
  std::size_t size() const;  // of an array

  // Each fails where the value has another type, naming the place.
  const std::string& as_string() const;
  bool as_bool() const;
  std::int64_t as_integer(std::int64_t low, std::int64_t high) const;
  double as_number() const;
  const std::vector<Value>& as_array() const;
  const std::vector<Value::Member>& as_object() const;
  std::string string_or(std::string_view name, const std::string& fallback) const;
  bool bool_or(std::string_view name, bool fallback) const;

  [[noreturn]] void wrong(std::string_view wanted) const;
  /// Logs the members that are not among `known`: whoever wrote them meant something.
  void warn_unknown(std::initializer_list<std::string_view> known) const;

 private:
  const Value* value_;
  std::string path_;
};

}  // namespace kf::json
