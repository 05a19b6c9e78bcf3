#include "data/template/values.h"

#include "core/error.h"
#include "data/template/values_of_json.h"

namespace kf::jinja {
namespace dom = simdjson::dom;

Value value_of(const dom::element& element, Origin origin) {
  switch (element.type()) {
    case dom::element_type::STRING: return Value::text(element.get_string().value(), origin);
    case dom::element_type::BOOL: return element.get_bool().value();
    case dom::element_type::INT64: return element.get_int64().value();
    case dom::element_type::UINT64: return static_cast<double>(element.get_uint64().value());
    case dom::element_type::DOUBLE: return element.get_double().value();
    case dom::element_type::ARRAY: {
      List out;
      const dom::array items = element.get_array().value();
      for (const dom::element item : items) {
        out.push_back(value_of(item, origin));
      }
      return out;
    }
    case dom::element_type::OBJECT: {
      Dict out;
      const dom::object members = element.get_object().value();
      for (const dom::key_value_pair member : members) {
        out.set(Value::text(member.key, origin), value_of(member.value, origin));
      }
      return out;
    }
    default: return None{};
  }
}

Value parse_value(std::string_view json, const std::string& name, Origin origin) {
  thread_local dom::parser parser;
  dom::element root;
  const simdjson::error_code error = parser.parse(simdjson::padded_string(json)).get(root);
  KF_CHECK(error == simdjson::SUCCESS, Code::data, "{} is no JSON: {}", name, simdjson::error_message(error));
  return value_of(root, origin);
}

}  // namespace kf::jinja
