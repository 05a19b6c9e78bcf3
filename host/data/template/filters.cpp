// Filters of Jinja that chat templates use.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "core/error.h"
#include "data/template/functions.h"

namespace kf::jinja {
namespace {

using Filter = Value (*)(const Value&, const Arguments&);

bool flag(const Arguments& arguments, std::size_t place, std::string_view name, bool fallback) {
  const Value* const value = arguments.find(place, name);
  return value == nullptr ? fallback : value->truth();
}

std::int64_t whole(const Arguments& arguments, std::size_t place, std::string_view name, std::int64_t fallback) {
  const Value* const value = arguments.find(place, name);
  std::int64_t room = 0;
  return value == nullptr || value->whole(room) == nullptr ? fallback : *value->whole(room);
}

std::string word(const Arguments& arguments, std::size_t place, std::string_view name, const char* fallback) {
  const Value* const value = arguments.find(place, name);
  return value == nullptr || value->text() == nullptr ? fallback : value->text()->bytes;
}

template <Case wanted>
Value change_case(const Value& value, const Arguments& /*arguments*/) {
  Text room;
  return in_case(text_of(value, room), wanted);
}

Value trim(const Value& value, const Arguments& arguments) {
  Text room;
  return stripped(text_of(value, room), word(arguments, 0, "chars", ""), true, true);
}

Value length(const Value& value, const Arguments& /*arguments*/) {
  if (const Dict* dict = value.dict()) {
    return static_cast<std::int64_t>(dict->items.size());
  }
  KF_CHECK(!value.is_number() && !value.is_none(), Code::data, "{} has no length", value.kind());
  return static_cast<std::int64_t>(items_of(value).size());
}

Value to_json(const Value& value, const Arguments& arguments) {
  JsonStyle style;
  style.indent = whole(arguments, 0, "indent", -1);
  style.ascii = flag(arguments, 9, "ensure_ascii", false);
  style.sorted = flag(arguments, 9, "sort_keys", false);
  style.item = style.indent >= 0 ? "," : ", ";
  if (const Value* const separators = arguments.find(9, "separators"); separators != nullptr && separators->list() != nullptr) {
    KF_CHECK(separators->list()->size() == 2, Code::data, "separators are two strings");
    style.item = printed((*separators->list())[0]).bytes;
    style.key = printed((*separators->list())[1]).bytes;
  }
  return json_text(value, style);
}

/// What `attribute="a.b"` of map, selectattr and their like finds in an item.
Value attribute_of(Value item, std::string_view path) {
  while (!path.empty()) {
    const std::size_t dot = path.find('.');
    const std::string_view name = path.substr(0, dot);
    const Value* const found = item.dict() != nullptr ? item.dict()->find(name) : nullptr;
    item = found != nullptr ? *found : Value(Undefined{std::string(name)});
    path = dot == std::string_view::npos ? "" : path.substr(dot + 1);
  }
  return item;
}

Value join(const Value& value, const Arguments& arguments) {
  Text room;
  const Value* const between = arguments.find(0, "d");
  const std::string attribute = word(arguments, 1, "attribute", "");
  List items = items_of(value);
  for (Value& item : items) {
    item = attribute.empty() ? item : attribute_of(item, attribute);
  }
  return joined(items, between == nullptr ? Text() : text_of(*between, room));
}

Value first(const Value& value, const Arguments& /*arguments*/) {
  const List items = items_of(value);
  return items.empty() ? Value() : items.front();
}
Value last(const Value& value, const Arguments& /*arguments*/) {
  const List items = items_of(value);
  return items.empty() ? Value() : items.back();
}

Value or_default(const Value& value, const Arguments& arguments) {
  const Value* const fallback = arguments.find(0, "default_value");
  const bool gone = value.is_undefined() || (flag(arguments, 1, "boolean", false) && !value.truth());
  return !gone ? value : fallback == nullptr ? Value::text("") : *fallback;
}

Value replace(const Value& value, const Arguments& arguments) {
  const Value* const what = arguments.find(0, "old");
  const Value* const by = arguments.find(1, "new");
  KF_CHECK(what != nullptr && by != nullptr, Code::data, "replace wants two strings");
  Text rooms[3];
  return replaced(text_of(value, rooms[0]), text_of(*what, rooms[1]), text_of(*by, rooms[2]), whole(arguments, 2, "count", -1));
}

/// map, with a filter's name or attribute = name.
Value map(const Value& value, const Arguments& arguments) {
  List out;
  const Value* const attribute = arguments.find(9, "attribute");
  const Value* const fallback = arguments.find(9, "default");
  Arguments rest;
  if (attribute == nullptr) {
    KF_CHECK(!arguments.values.empty() && arguments.values[0].text() != nullptr, Code::data, "map wants a filter or attribute = NAME");
    check_filter(arguments.values[0].text()->bytes, 0);
    rest.values.assign(arguments.values.begin() + 1, arguments.values.end());
    rest.named = arguments.named;
  }
  for (const Value& item : items_of(value)) {
    if (attribute == nullptr) {
      out.push_back(apply_filter(arguments.values[0].text()->bytes, item, rest));
      continue;
    }
    const Value found = attribute_of(item, printed(*attribute).bytes);
    out.push_back(found.is_undefined() && fallback != nullptr ? *fallback : found);
  }
  return out;
}

/// select and reject, selectattr and rejectattr: by a test, of an item or of its attribute; without one by truth.
template <bool keeps, bool of_attribute>
Value choose(const Value& value, const Arguments& arguments) {
  const std::size_t at = of_attribute ? 1 : 0;
  KF_CHECK(arguments.values.size() >= at, Code::data, "an attribute's name is missing");
  std::string test;
  Arguments rest;
  if (arguments.values.size() > at) {
    test = printed(arguments.values[at]).bytes;
    check_test(test, 0);
    rest.values.assign(arguments.values.begin() + static_cast<std::ptrdiff_t>(at) + 1, arguments.values.end());
  }
  List out;
  for (const Value& item : items_of(value)) {
    const Value tested = of_attribute ? attribute_of(item, printed(arguments.values[0]).bytes) : item;
    if ((test.empty() ? tested.truth() : apply_test(test, tested, rest)) == keeps) {
      out.push_back(item);
    }
  }
  return out;
}

Value pairs(const Value& value, const Arguments& /*arguments*/) {
  List out;
  KF_CHECK(value.dict() != nullptr || value.is_undefined(), Code::data, "items wants a dict, not {}", value.kind());
  for (const Pair& item : value.dict() == nullptr ? std::vector<Pair>() : value.dict()->items) {
    out.emplace_back(List{item.first, item.second});
  }
  return out;
}

/// By a key that `of` finds in an item; texts without regard to case unless asked.
template <class F>
List sorted(List items, F of, bool reverse, bool cases) {
  const auto key = [&](const Value& item) {
    const Value found = of(item);
    return !cases && found.text() != nullptr ? Value(in_case(*found.text(), Case::lower)) : found;
  };
  std::stable_sort(items.begin(), items.end(),
                   [&](const Value& a, const Value& b) { return reverse ? compare(key(b), key(a)) < 0 : compare(key(a), key(b)) < 0; });
  return items;
}

Value sort(const Value& value, const Arguments& arguments) {
  const std::string attribute = word(arguments, 2, "attribute", "");
  return sorted(
      items_of(value), [&](const Value& item) { return attribute_of(item, attribute); }, flag(arguments, 0, "reverse", false),
      flag(arguments, 1, "case_sensitive", false));
}

Value dictsort(const Value& value, const Arguments& arguments) {
  const std::size_t by = word(arguments, 1, "by", "key") == "value" ? 1 : 0;
  return sorted(
      *pairs(value, {}).list(), [&](const Value& item) { return (*item.list())[by]; }, flag(arguments, 2, "reverse", false),
      flag(arguments, 0, "case_sensitive", false));
}

Value unique(const Value& value, const Arguments& /*arguments*/) {
  List out;
  for (const Value& item : items_of(value)) {
    if (std::none_of(out.begin(), out.end(), [&](const Value& each) { return equal(each, item); })) {
      out.push_back(item);
    }
  }
  return out;
}

Value reversed(const Value& value, const Arguments& /*arguments*/) {
  List items = items_of(value);
  std::reverse(items.begin(), items.end());
  return value.text() != nullptr ? Value(joined(items, {})) : Value(std::move(items));
}

Value indented(const Value& value, const Arguments& arguments) {
  const Value* const width = arguments.find(0, "width");
  const std::string blanks = width != nullptr && width->text() != nullptr
                                 ? width->text()->bytes
                                 : std::string(static_cast<std::size_t>(std::max<std::int64_t>(0, whole(arguments, 0, "width", 4))), ' ');
  const bool blank_lines = flag(arguments, 2, "blank", false);
  Text room;
  const Text& text = text_of(value, room);
  Text out;
  out.append(flag(arguments, 1, "first", false) ? blanks : "", 0);
  for (std::size_t i = 0; i < text.size(); ++i) {
    out.append(text.part(i, i + 1));
    const bool blank = i + 1 == text.size() || text.bytes[i + 1] == '\n';
    out.append(text.bytes[i] == '\n' && (blank_lines || !blank) ? blanks : "", 0);
  }
  return out;
}

Value to_integer(const Value& value, const Arguments& arguments) {
  if (value.is_number()) {
    return static_cast<std::int64_t>(value.number());
  }
  const std::int64_t fallback = whole(arguments, 0, "default", 0);
  if (value.text() == nullptr) {
    return fallback;
  }
  const std::string text = stripped(*value.text(), "", true, true).bytes;
  double out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() ? static_cast<std::int64_t>(out) : fallback;
}

Value to_real(const Value& value, const Arguments& arguments) {
  if (value.is_number()) {
    return value.number();
  }
  const Value* const fallback = arguments.find(0, "default");
  double out = fallback != nullptr && fallback->is_number() ? fallback->number() : 0.0;
  const std::string text = value.text() == nullptr ? "" : stripped(*value.text(), "", true, true).bytes;
  double read = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), read);
  out = error == std::errc() && end == text.data() + text.size() ? read : out;
  return out;
}

Value rounded(const Value& value, const Arguments& arguments) {
  KF_CHECK(value.is_number(), Code::data, "round wants a number, not {}", value.kind());
  const double scale = std::pow(10.0, static_cast<double>(whole(arguments, 0, "precision", 0)));
  const std::string how = word(arguments, 1, "method", "common");
  const double scaled = value.number() * scale;
  return (how == "ceil" ? std::ceil(scaled) : how == "floor" ? std::floor(scaled) : std::nearbyint(scaled)) / scale;
}

Value absolute(const Value& value, const Arguments& /*arguments*/) {
  KF_CHECK(value.is_number(), Code::data, "abs wants a number, not {}", value.kind());
  return value.integer() != nullptr ? Value(std::abs(*value.integer())) : Value(std::abs(value.number()));
}

Value sum(const Value& value, const Arguments& arguments) {
  std::int64_t integers = 0;
  double reals = 0;
  bool real = false;
  for (const Value& each : items_of(value)) {
    const Value item = attribute_of(each, word(arguments, 0, "attribute", ""));
    KF_CHECK(item.is_number(), Code::data, "sum wants numbers, not {}", item.kind());
    real = real || item.real() != nullptr;
    reals += item.real() != nullptr ? *item.real() : 0.0;
    integers += item.real() != nullptr ? 0 : static_cast<std::int64_t>(item.number());
  }
  return real ? Value(reals + static_cast<double>(integers)) : Value(integers);
}

template <int sign>
Value extreme(const Value& value, const Arguments& /*arguments*/) {
  const List items = items_of(value);
  const auto at = std::min_element(items.begin(), items.end(), [](const Value& a, const Value& b) { return sign * compare(a, b) < 0; });
  return at == items.end() ? Value() : *at;
}

Value escaped(const Value& value, const Arguments& /*arguments*/) {
  Text room;
  Text out = text_of(value, room);
  for (const auto& [from, to] : {std::pair{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"'", "&#39;"}, {"\"", "&#34;"}}) {
    out = replaced(out, Text(from), Text(to));
  }
  return out;
}

const std::map<std::string_view, Filter>& filters() {
  static const std::map<std::string_view, Filter> all{
      {"trim", trim},
      {"strip", trim},
      {"length", length},
      {"count", length},
      {"tojson", to_json},
      {"upper", change_case<Case::upper>},
      {"lower", change_case<Case::lower>},
      {"capitalize", change_case<Case::capital>},
      {"title", change_case<Case::title>},
      {"join", join},
      {"first", first},
      {"last", last},
      {"default", or_default},
      {"d", or_default},
      {"replace", replace},
      {"list", [](const Value& v, const Arguments& /*a*/) -> Value { return items_of(v); }},
      {"map", map},
      {"select", choose<true, false>},
      {"reject", choose<false, false>},
      {"selectattr", choose<true, true>},
      {"rejectattr", choose<false, true>},
      {"items", pairs},
      {"dictsort", dictsort},
      {"sort", sort},
      {"unique", unique},
      {"reverse", reversed},
      {"string", [](const Value& v, const Arguments& /*a*/) -> Value { return printed(v); }},
      {"safe", [](const Value& v, const Arguments& /*a*/) -> Value { return v; }},
      {"int", to_integer},
      {"float", to_real},
      {"round", rounded},
      {"abs", absolute},
      {"sum", sum},
      {"min", extreme<1>},
      {"max", extreme<-1>},
      {"indent", indented},
      {"escape", escaped},
      {"e", escaped},
  };
  return all;
}

}  // namespace

void check_filter(std::string_view name, int line) {
  if (filters().count(name) > 0) {
    return;
  }
  std::vector<std::string> names;
  for (const auto& [known, ignored] : filters()) {
    names.emplace_back(known);
  }
  fail(Code::config, "line {}: there is no filter {}; have: {}", line, kf::quoted(name), kf::join(names, ", "));
}

Value apply_filter(std::string_view name, const Value& value, const Arguments& arguments) { return filters().at(name)(value, arguments); }

}  // namespace kf::jinja
