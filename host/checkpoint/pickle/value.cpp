#include "checkpoint/pickle/value.h"

namespace kf::pickle {

std::string_view words_for(Kind kind) {
  switch (kind) {
    case Kind::none: return "None";
    case Kind::boolean: return "a boolean";
    case Kind::integer: return "an integer";
    case Kind::large_integer: return "an integer beyond 64 bits";
    case Kind::real: return "a float";
    case Kind::text: return "a string";
    case Kind::bytes: return "bytes";
    case Kind::list: return "a list";
    case Kind::tuple: return "a tuple";
    case Kind::set: return "a set";
    case Kind::dict: return "a dict";
    case Kind::global: return "a class or function";
    case Kind::object: return "an object";
    case Kind::reference: return "a storage";
  }
  return "";
}

std::size_t Value::size() const {
  switch (kind()) {
    case Kind::list:
    case Kind::tuple:
    case Kind::set: return node().items.size();
    case Kind::dict: return node().items.size() / 2;
    case Kind::object: return at(node().items.at(0)).size();
    default: return 0;
  }
}

Value Value::item(std::size_t index) const { return is(Kind::object) ? at(node().items.at(0)).item(index) : at(node().items.at(index)); }

std::optional<Value> Value::find(std::string_view name) const {
  for (std::size_t i = is(Kind::dict) ? size() : 0; i-- > 0;) {
    if (key(i).is(Kind::text) && key(i).text() == name) {
      return value(i);
    }
  }
  return std::nullopt;
}

std::optional<Value> Value::state() const {
  return is(Kind::object) && node().items.size() > 1 ? std::optional(at(node().items[1])) : std::nullopt;
}

}  // namespace kf::pickle
