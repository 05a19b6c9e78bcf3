// Methods of values, as Python's str, list and dict have them.

#include <algorithm>
#include <map>

#include "core/error.h"
#include "data/template/functions.h"

namespace kf::jinja {
namespace {

using TextMethod = Value (*)(const Text&, const Arguments&);

const Text& text_argument(const Arguments& arguments, std::size_t place, std::string_view name) {
  const Value* const value = arguments.find(place, name);
  KF_CHECK(value != nullptr && value->text() != nullptr, Code::data, "argument {} ({}) must be a string, not {}", place + 1, name,
           value == nullptr ? "left out" : value->kind());
  return *value->text();
}

std::int64_t integer_argument(const Arguments& arguments, std::size_t place, std::string_view name, std::int64_t fallback) {
  const Value* const value = arguments.find(place, name);
  std::int64_t room = 0;
  const std::int64_t* const whole = value == nullptr ? nullptr : value->whole(room);
  KF_CHECK(value == nullptr || whole != nullptr, Code::data, "argument {} ({}) must be a whole number, not {}", place + 1, name,
           value == nullptr ? "" : value->kind());
  return whole == nullptr ? fallback : *whole;
}

std::string dropped(const Arguments& arguments) {
  const Value* const value = arguments.find(0, "chars");
  return value == nullptr || value->is_none() ? "" : text_argument(arguments, 0, "chars").bytes;
}

List split_at_blanks(const Text& text, std::int64_t most, bool from_right) {
  List out;
  Text rest = stripped(text, "", true, true);
  const auto blank = [&](std::size_t i) { return std::string_view(" \t\n\r\f\v").find(rest.bytes[i]) != std::string_view::npos; };
  while (!rest.empty() && most-- != 0) {
    std::size_t at = from_right ? rest.size() : 0;
    while (from_right ? at > 0 && !blank(at - 1) : at < rest.size() && !blank(at)) {
      at += from_right ? static_cast<std::size_t>(-1) : 1;
    }
    out.emplace_back(from_right ? rest.part(at, rest.size()) : rest.part(0, at));
    rest = stripped(from_right ? rest.part(0, at) : rest.part(at, rest.size()), "", true, true);
  }
  if (!rest.empty()) {
    out.emplace_back(std::move(rest));
  }
  return out;
}

List split_at(const Text& text, const std::string& separator, std::int64_t most, bool from_right) {
  KF_CHECK(!separator.empty(), Code::data, "an empty separator");
  List out;
  std::size_t begin = 0;
  std::size_t end = text.size();
  while (most-- != 0) {
    const std::size_t at = from_right ? (end < separator.size() ? std::string::npos : text.bytes.rfind(separator, end - separator.size()))
                                      : text.bytes.find(separator, begin);
    if (at == std::string::npos || at < begin) {
      break;
    }
    out.emplace_back(from_right ? text.part(at + separator.size(), end) : text.part(begin, at));
    (from_right ? end : begin) = from_right ? at : at + separator.size();
  }
  out.emplace_back(text.part(begin, end));
  return out;
}

Value split(const Text& text, const Arguments& arguments, bool from_right) {
  const Value* const separator = arguments.find(0, "sep");
  const std::int64_t most = integer_argument(arguments, 1, "maxsplit", -1);
  List out = separator == nullptr || separator->is_none() ? split_at_blanks(text, most, from_right)
                                                          : split_at(text, text_argument(arguments, 0, "sep").bytes, most, from_right);
  if (from_right) {
    std::reverse(out.begin(), out.end());
  }
  return out;
}

/// startswith and endswith: of one text, or of any in a list.
Value begins_or_ends(const Text& text, const Arguments& arguments, bool begins) {
  const Value* const what = arguments.find(0, "prefix");
  KF_CHECK(what != nullptr && (what->text() != nullptr || what->list() != nullptr), Code::data, "a string is expected, not {}",
           what == nullptr ? "nothing" : what->kind());
  const auto fits = [&](const Value& each) {
    KF_CHECK(each.text() != nullptr, Code::data, "a string is expected, not {}", each.kind());
    return begins ? text.bytes.starts_with(each.text()->bytes) : text.bytes.ends_with(each.text()->bytes);
  };
  return what->list() != nullptr ? std::any_of(what->list()->begin(), what->list()->end(), fits) : fits(*what);
}

/// Characters before byte `at`.
std::int64_t characters_before(const Text& text, std::size_t at) {
  return static_cast<std::int64_t>(characters(std::string_view(text.bytes).substr(0, at)).size()) - 1;
}

Value find_text(const Text& text, const Arguments& arguments, bool from_right) {
  const std::string& what = text_argument(arguments, 0, "sub").bytes;
  const std::size_t at = from_right ? text.bytes.rfind(what) : text.bytes.find(what);
  return at == std::string::npos ? Value(std::int64_t{-1}) : Value(characters_before(text, at));
}

Value count_text(const Text& text, const Arguments& arguments) {
  const std::string& what = text_argument(arguments, 0, "sub").bytes;
  std::int64_t count = 0;
  for (std::size_t at = what.empty() ? std::string::npos : text.bytes.find(what); at != std::string::npos;
       at = text.bytes.find(what, at + what.size())) {
    ++count;
  }
  return count;
}

Value lines(const Text& text, const Arguments& /*arguments*/) {
  List out = split_at(text, "\n", -1, false);
  if (!out.empty() && out.back().text()->empty()) {
    out.pop_back();
  }
  return out;
}

template <Case wanted>
Value change_case(const Text& text, const Arguments& /*arguments*/) {
  return in_case(text, wanted);
}

const std::map<std::string_view, TextMethod>& text_methods() {
  static const std::map<std::string_view, TextMethod> all{
      {"strip", [](const Text& t, const Arguments& a) -> Value { return stripped(t, dropped(a), true, true); }},
      {"lstrip", [](const Text& t, const Arguments& a) -> Value { return stripped(t, dropped(a), true, false); }},
      {"rstrip", [](const Text& t, const Arguments& a) -> Value { return stripped(t, dropped(a), false, true); }},
      {"split", [](const Text& t, const Arguments& a) { return split(t, a, false); }},
      {"rsplit", [](const Text& t, const Arguments& a) { return split(t, a, true); }},
      {"splitlines", lines},
      {"startswith", [](const Text& t, const Arguments& a) { return begins_or_ends(t, a, true); }},
      {"endswith", [](const Text& t, const Arguments& a) { return begins_or_ends(t, a, false); }},
      {"replace",
       [](const Text& t, const Arguments& a) -> Value {
         return replaced(t, text_argument(a, 0, "old"), text_argument(a, 1, "new"), integer_argument(a, 2, "count", -1));
       }},
      {"removeprefix",
       [](const Text& t, const Arguments& a) -> Value {
         const std::string& what = text_argument(a, 0, "prefix").bytes;
         return t.part(t.bytes.starts_with(what) ? what.size() : 0, t.size());
       }},
      {"removesuffix",
       [](const Text& t, const Arguments& a) -> Value {
         const std::string& what = text_argument(a, 0, "suffix").bytes;
         return t.part(0, t.size() - (t.bytes.ends_with(what) ? what.size() : 0));
       }},
      {"upper", change_case<Case::upper>},
      {"lower", change_case<Case::lower>},
      {"capitalize", change_case<Case::capital>},
      {"title", change_case<Case::title>},
      {"find", [](const Text& t, const Arguments& a) { return find_text(t, a, false); }},
      {"rfind", [](const Text& t, const Arguments& a) { return find_text(t, a, true); }},
      {"count", count_text},
      {"join",
       [](const Text& t, const Arguments& a) -> Value {
         const Value* const items = a.find(0, "iterable");
         KF_CHECK(items != nullptr, Code::data, "join() wants a list");
         return joined(items_of(*items), t);
       }},
      {"isdigit",
       [](const Text& t, const Arguments& /*a*/) -> Value {
         return !t.empty() && t.bytes.find_first_not_of("0123456789") == std::string::npos;
       }},
      {"isspace", [](const Text& t, const Arguments& /*a*/) -> Value { return !t.empty() && stripped(t, "", true, true).empty(); }},
  };
  return all;
}

Value dict_method(const Value& object, std::string_view name) {
  const auto bound = [&](auto body) {
    return Value(Function{std::string(name), [object, body](const Arguments& arguments) { return body(*object.dict(), arguments); }});
  };
  if (name == "items") {
    return bound([](const Dict& dict, const Arguments&) -> Value {
      List out;
      for (const Pair& item : dict.items) {
        out.emplace_back(List{item.first, item.second});
      }
      return out;
    });
  }
  if (name == "keys") {
    return bound([](const Dict& dict, const Arguments&) -> Value { return items_of(Value(dict)); });
  }
  if (name == "values") {
    return bound([](const Dict& dict, const Arguments&) -> Value {
      List out;
      for (const Pair& item : dict.items) {
        out.push_back(item.second);
      }
      return out;
    });
  }
  if (name == "get") {
    return bound([](const Dict& dict, const Arguments& arguments) -> Value {
      const Value* const key = arguments.find(0, "key");
      KF_CHECK(key != nullptr, Code::data, "get() wants a key");
      const Value* const found = dict.at(*key);
      const Value* const fallback = arguments.find(1, "default");
      return found != nullptr ? *found : fallback != nullptr ? *fallback : Value(None{});
    });
  }
  return {};
}

Value list_method(const Value& object, std::string_view name) {
  if (name != "index" && name != "count") {
    return {};
  }
  return Value(Function{std::string(name), [object, counts = name == "count"](const Arguments& arguments) -> Value {
                          const Value* const item = arguments.find(0, "value");
                          KF_CHECK(item != nullptr, Code::data, "a value to look for is missing");
                          const List& list = *object.list();
                          if (counts) {
                            return static_cast<std::int64_t>(
                                std::count_if(list.begin(), list.end(), [&](const Value& each) { return equal(each, *item); }));
                          }
                          const auto at = std::find_if(list.begin(), list.end(), [&](const Value& each) { return equal(each, *item); });
                          KF_CHECK(at != list.end(), Code::data, "index(): the value is not in the list");
                          return static_cast<std::int64_t>(at - list.begin());
                        }});
}

}  // namespace

Value method_of(const Value& object, std::string_view name) {
  if (object.text() != nullptr) {
    const auto found = text_methods().find(name);
    if (found == text_methods().end()) {
      return {};
    }
    return Value(Function{std::string(name),
                          [object, method = found->second](const Arguments& arguments) { return method(*object.text(), arguments); }});
  }
  return object.dict() != nullptr ? dict_method(object, name) : object.list() != nullptr ? list_method(object, name) : Value();
}

}  // namespace kf::jinja
