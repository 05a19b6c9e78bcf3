#include "data/read/json_record.h"

#include <simdjson.h>

#include <nlohmann/json.hpp>

#include <deque>

#include "core/c_locale.h"
#include "core/text.h"
#include "data/read/utf8.h"

namespace kf {
namespace {

namespace dom = simdjson::dom;

std::string_view name_of(dom::element_type type) {
  switch (type) {
    case dom::element_type::ARRAY: return "a list";
    case dom::element_type::OBJECT: return "an object";
    case dom::element_type::STRING: return "a string";
    case dom::element_type::BOOL: return "a boolean";
    case dom::element_type::NULL_VALUE: return "null";
    default: return "a number";
  }
}

std::string keys_of(const dom::object& object) {
  std::vector<std::string> keys;
  for (const dom::key_value_pair field : object) {
    keys.emplace_back(field.key);
  }
  return keys.empty() ? "the object is empty" : "the keys are " + join(keys, ", ");
}

/// The value of a key, the last one where it is repeated, as Python reads it.
std::optional<dom::element> find(const dom::object& object, std::string_view key) {
  std::optional<dom::element> out;
  for (const dom::key_value_pair field : object) {
    if (field.key == key) {
      out = field.value;
    }
  }
  return out;
}

constexpr std::size_t kDeepest = 512;
constexpr std::size_t kLarge = std::size_t{1} << 24;  // bytes of a record that is an exception

/// Reads JSON and keeps nothing but where it breaks and how deep it goes.
struct Syntax final : nlohmann::json::json_sax_t {
  std::size_t at = 0;
  std::size_t depth = 0;
  std::size_t deepest = 0;
  bool open() {
    deepest = std::max(deepest, ++depth);
    return true;
  }
  bool close() {
    --depth;
    return true;
  }
  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(number_integer_t /*value*/) override { return true; }
  bool number_unsigned(number_unsigned_t /*value*/) override { return true; }
  bool number_float(number_float_t /*value*/, const std::string& /*text*/) override { return true; }
  bool string(std::string& /*value*/) override { return true; }
  bool binary(nlohmann::json::binary_t& /*value*/) override { return true; }
  bool start_object(std::size_t /*size*/) override { return open(); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t /*size*/) override { return open(); }
  bool end_array() override { return close(); }
  bool key(std::string& /*name*/) override { return true; }
  bool parse_error(std::size_t position, const std::string& /*token*/, const nlohmann::detail::exception& /*error*/) override {
    at = position;
    return false;
  }
};

}  // namespace

struct JsonRecord::Parser {
  dom::parser dom;
  std::vector<std::string_view> values;
  std::vector<Message> messages;
  std::deque<std::string> made;  // values that are printed, contents that are joined
  std::string plain;             // the record again, where a number was out of the fast parser's range

  std::string fields(const dom::object& object, RecordText& text, Record& record);
  std::string chat(const dom::object& object, RecordText& text, Record& record);
  std::string message(const dom::element& element, std::size_t index);
  std::string content(const dom::element& element, std::string_view& out);
};

std::string JsonRecord::Parser::fields(const dom::object& object, RecordText& text, Record& record) {
  values.assign(text.fields().size(), {});
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::optional<dom::element> element = find(object, text.fields()[i]);
    if (!element) {
      return format("no {}; {}", text.describe(i), keys_of(object));
    }
    const dom::element_type type = element->type();
    if (type == dom::element_type::STRING) {
      values[i] = element->get_string().value();
    } else if (text.strings_only() || type == dom::element_type::NULL_VALUE) {
      return format("the {} is {}, not a string", text.describe(i), name_of(type));
    } else {
      values[i] = made.emplace_back(simdjson::minify(*element));
    }
  }
  text.from_fields(values, record);
  return "";
}

/// A string, or a list of parts {type = "text", text}, as some chats have.
std::string JsonRecord::Parser::content(const dom::element& element, std::string_view& out) {
  if (element.is_string()) {
    out = element.get_string().value();
    return "";
  }
  if (!element.is_array()) {
    return format("content is {}, not a string", name_of(element.type()));
  }
  std::string& joined = made.emplace_back();
  const dom::array parts = element.get_array().value();  // a loop over the result itself would outlive it
  for (const dom::element part : parts) {
    std::string_view text;
    if (part.at_key("text").get(text) != simdjson::SUCCESS) {
      return "content has a part that is no text";
    }
    joined += text;
  }
  out = joined;
  return "";
}

std::string JsonRecord::Parser::message(const dom::element& element, std::size_t index) {
  dom::object object;
  if (element.get(object) != simdjson::SUCCESS) {
    return format("message {} is {}, not an object with role and content", index, name_of(element.type()));
  }
  Message message;
  const std::optional<dom::element> role = find(object, "role");
  const std::optional<dom::element> body = find(object, "content");
  if (!role || !body) {
    return format("message {} has no {}; {}", index, role ? "content" : "role", keys_of(object));
  }
  if (role->get(message.role) != simdjson::SUCCESS) {
    return format("message {}: role is {}, not a string", index, name_of(role->type()));
  }
  if (const std::string problem = content(*body, message.content); !problem.empty()) {
    return format("message {}: {}", index, problem);
  }
  messages.push_back(message);
  return "";
}

std::string JsonRecord::Parser::chat(const dom::object& object, RecordText& text, Record& record) {
  const std::optional<dom::element> list = find(object, text.fields()[0]);
  if (!list) {
    return format("no {}; {}", text.describe(0), keys_of(object));
  }
  if (!list->is_array()) {
    return format("the {} is {}, not a list of messages", text.describe(0), name_of(list->type()));
  }
  messages.clear();
  const dom::array elements = list->get_array().value();
  for (const dom::element element : elements) {
    if (std::string problem = message(element, messages.size()); !problem.empty()) {
      return problem;
    }
  }
  if (messages.empty()) {
    return format("the {} is an empty list", text.describe(0));
  }
  text.from_messages(messages, record);
  return "";
}

JsonRecord::JsonRecord(const ReadOptions& options) : text_(options), parser_(std::make_unique<Parser>()) {}
JsonRecord::~JsonRecord() = default;

void JsonRecord::release() {
  if (parser_->dom.capacity() > kLarge) {
    parser_ = std::make_unique<Parser>();
  }
}

std::string JsonRecord::try_read(std::string_view json, Record& record) {
  parser_->made.clear();
  dom::element root;
  simdjson::error_code error = parser_->dom.parse(json.data(), json.size(), false).get(root);
  if (error != simdjson::SUCCESS) {
    std::string problem = problem_of(json);
    if (!problem.empty()) {
      return problem;
    }
    // Valid after all, but with a number beyond 64 bits: printed again, such numbers are floating point.
    const CLocale plain;
    parser_->plain = nlohmann::json::parse(json).dump();
    error = parser_->dom.parse(parser_->plain).get(root);
    if (error != simdjson::SUCCESS) {
      return format("cannot be parsed: {}", simdjson::error_message(error));
    }
  }
  dom::object object;
  if (root.get(object) != simdjson::SUCCESS) {
    return format("expected a JSON object with the {}, found {}", text_.describe(0), name_of(root.type()));
  }
  return text_.chat() ? parser_->chat(object, text_, record) : parser_->fields(object, text_, record);
}

/// Where the text stops being JSON, found by a slower parser that knows; "" when only a number is out of the fast one's range.
std::string JsonRecord::problem_of(std::string_view json) const {
  if (!valid_utf8(json)) {
    return utf8_fault(json);
  }
  try {
    Syntax syntax;
    if (!nlohmann::json::sax_parse(json.begin(), json.end(), &syntax)) {
      return syntax.at > json.size() ? format("not valid JSON: it ends early, after {} bytes", json.size())
                                     : format("not valid JSON at byte {} of {}", syntax.at, json.size());
    }
    return syntax.deepest > kDeepest ? format("nested {} deep; {} is the most", syntax.deepest, kDeepest) : "";
  } catch (const nlohmann::json::exception& error) {
    return format("not valid JSON: {}", error.what());
  }
}

}  // namespace kf
