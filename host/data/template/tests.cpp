// Tests of Jinja (`x is defined`), and the functions that every template may call.

#include <cmath>
#include <map>

#include "core/error.h"
#include "data/template/functions.h"

namespace kf::jinja {
namespace {

using Test = bool (*)(const Value&, const Value&);

std::int64_t integer_of(const Value& value) {
  std::int64_t room = 0;
  const std::int64_t* const whole = value.whole(room);
  KF_CHECK(whole != nullptr, Code::data, "a whole number is expected, not {}", value.kind());
  return *whole;
}

bool is_sequence(const Value& value) { return value.list() != nullptr || value.text() != nullptr || value.dict() != nullptr; }

const std::map<std::string_view, Test>& tests() {
  static const std::map<std::string_view, Test> all{
      {"defined", [](const Value& v, const Value&) { return !v.is_undefined(); }},
      {"undefined", [](const Value& v, const Value&) { return v.is_undefined(); }},
      {"none", [](const Value& v, const Value&) { return v.is_none(); }},
      {"string", [](const Value& v, const Value&) { return v.text() != nullptr; }},
      {"mapping", [](const Value& v, const Value&) { return v.dict() != nullptr; }},
      {"sequence", [](const Value& v, const Value&) { return is_sequence(v) || v.is_undefined(); }},
      {"iterable", [](const Value& v, const Value&) { return is_sequence(v) || v.is_undefined(); }},
      {"number", [](const Value& v, const Value&) { return v.is_number(); }},
      {"integer", [](const Value& v, const Value&) { return v.integer() != nullptr; }},
      {"float", [](const Value& v, const Value&) { return v.real() != nullptr; }},
      {"boolean", [](const Value& v, const Value&) { return v.boolean() != nullptr; }},
      {"true", [](const Value& v, const Value&) { return v.boolean() != nullptr && *v.boolean(); }},
      {"false", [](const Value& v, const Value&) { return v.boolean() != nullptr && !*v.boolean(); }},
      {"callable", [](const Value& v, const Value&) { return v.function() != nullptr; }},
      {"even", [](const Value& v, const Value&) { return integer_of(v) % 2 == 0; }},
      {"odd", [](const Value& v, const Value&) { return integer_of(v) % 2 != 0; }},
      {"divisibleby", [](const Value& v, const Value& n) { return integer_of(n) != 0 && integer_of(v) % integer_of(n) == 0; }},
      {"eq", [](const Value& v, const Value& other) { return equal(v, other); }},
      {"equalto", [](const Value& v, const Value& other) { return equal(v, other); }},
      {"==", [](const Value& v, const Value& other) { return equal(v, other); }},
      {"sameas", [](const Value& v, const Value& other) { return equal(v, other); }},
      {"ne", [](const Value& v, const Value& other) { return !equal(v, other); }},
      {"!=", [](const Value& v, const Value& other) { return !equal(v, other); }},
      {"gt", [](const Value& v, const Value& other) { return compare(v, other) > 0; }},
      {"greaterthan", [](const Value& v, const Value& other) { return compare(v, other) > 0; }},
      {"ge", [](const Value& v, const Value& other) { return compare(v, other) >= 0; }},
      {"lt", [](const Value& v, const Value& other) { return compare(v, other) < 0; }},
      {"lessthan", [](const Value& v, const Value& other) { return compare(v, other) < 0; }},
      {"le", [](const Value& v, const Value& other) { return compare(v, other) <= 0; }},
      {"in", [](const Value& v, const Value& other) { return contains(other, v); }},
      {"lower", [](const Value& v, const Value&) { return printed(v).bytes == in_case(printed(v), Case::lower).bytes; }},
      {"upper", [](const Value& v, const Value&) { return printed(v).bytes == in_case(printed(v), Case::upper).bytes; }},
  };
  return all;
}

Value range(const Arguments& arguments) {
  constexpr std::int64_t kMost = 100000;  // as the sandbox of Jinja
  const std::size_t count = arguments.values.size();
  KF_CHECK(count >= 1 && count <= 3, Code::data, "range() wants one to three numbers");
  const std::int64_t begin = count == 1 ? 0 : integer_of(arguments.values[0]);
  const std::int64_t end = integer_of(arguments.values[count == 1 ? 0 : 1]);
  const std::int64_t step = count == 3 ? integer_of(arguments.values[2]) : 1;
  KF_CHECK(step != 0, Code::data, "range() with a step of 0");
  List out;
  for (std::int64_t i = begin; step > 0 ? i < end : i > end; i += step) {
    KF_CHECK(static_cast<std::int64_t>(out.size()) < kMost, Code::data, "range() of more than {} numbers", kMost);
    out.emplace_back(i);
  }
  return out;
}

Value dict_of(const Arguments& arguments, bool fixed) {
  Dict out;
  if (!arguments.values.empty() && arguments.values[0].dict() != nullptr) {
    out = *arguments.values[0].dict();
  }
  for (const auto& [name, value] : arguments.named) {
    out.put(name, value);
  }
  out.fixed = fixed;
  return out;
}

}  // namespace

void check_test(std::string_view name, int line) {
  if (tests().count(name) > 0) {
    return;
  }
  std::vector<std::string> names;
  for (const auto& [known, ignored] : tests()) {
    names.emplace_back(known);
  }
  fail(Code::config, "line {}: there is no test {}; have: {}", line, kf::quoted(name), join(names, ", "));
}

bool apply_test(std::string_view name, const Value& value, const Arguments& arguments) {
  return tests().at(name)(value, arguments.values.empty() ? Value() : arguments.values[0]);
}

const Value* global_function(std::string_view name) {
  static const std::map<std::string_view, Value> all{
      {"range", Function{"range", range}},
      {"dict", Function{"dict", [](const Arguments& arguments) { return dict_of(arguments, true); }}},
      {"namespace", Function{"namespace", [](const Arguments& arguments) { return dict_of(arguments, false); }}},
      {"raise_exception", Function{"raise_exception",
                                   [](const Arguments& arguments) -> Value {
                                     fail(Code::data, "the template refuses: {}",
                                          arguments.values.empty() ? "" : printed(arguments.values[0]).bytes);
                                   }}},
  };
  const auto found = all.find(name);
  return found == all.end() ? nullptr : &found->second;
}

}  // namespace kf::jinja
