#pragma once
// JSON that may stand inside of a page's <script>: `<` is escaped, and bytes that are no UTF-8 become U+FFFD, since names and samples are
// anybody's text.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kf::report {

class JsonWriter {
 public:
  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name);

  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(std::int64_t number);
  /// Nine digits; null for what is not finite.
  JsonWriter& value(double number);
  JsonWriter& value(bool yes);
  JsonWriter& null();
  template <class T>
  JsonWriter& value(const std::optional<T>& maybe) {
    return maybe ? value(*maybe) : null();
  }
  /// Members of an object that were written elsewhere, without their brackets.
  JsonWriter& members(std::string_view json) { return raw(json); }

  template <class T>
  JsonWriter& member(std::string_view name, const T& of) {
    return key(name).value(of);
  }

  template <class List>
  JsonWriter& list(std::string_view name, const List& of) {
    key(name).begin_array();
    for (const auto& one : of) {
      value(one);
    }
    return end_array();
  }

  const std::string& text() const { return text_; }
  std::string take() { return std::move(text_); }

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  JsonWriter& raw(std::string_view json);
  void separate();

  std::string text_;
  bool first_ = true;  // in the innermost list or object; also behind a key
};

}  // namespace kf::report
