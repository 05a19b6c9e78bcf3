#include "data/read/json_record.h"

#include <simdjson.h>

#include <nlohmann/json.hpp>

#include <charconv>
#include <deque>

#include "core/c_locale.h"
#include "core/text.h"
#include "data/file/utf8.h"
#include "data/template/values.h"
#include "data/template/values_of_json.h"

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

/// What stands behind "a.b.0": the key of that name, else item 0 of the member b of the member a.
std::optional<dom::element> find_path(const dom::object& object, std::string_view path) {
  if (const std::optional<dom::element> whole = find(object, path)) {
    return whole;
  }
  std::optional<dom::element> at;
  for (std::size_t from = path.find('.') == std::string_view::npos ? path.size() : 0; from < path.size();) {
    const std::size_t dot = std::min(path.find('.', from), path.size());
    const std::string_view name = path.substr(from, dot - from);
    if (from == 0 || at->is_object()) {
      at = find(from == 0 ? object : at->get_object().value(), name);
    } else {
      std::size_t index = 0;
      const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
      dom::array list;
      dom::element item;
      const bool there = error == std::errc() && end == name.data() + name.size() && at->get(list) == simdjson::SUCCESS &&
                         list.at(index).get(item) == simdjson::SUCCESS;
      at = there ? std::optional(item) : std::nullopt;
    }
    if (!at) {
      return std::nullopt;
    }
    from = dot + 1;
  }
  return at;
}

/// ShareGPT's names of those who speak.
std::string_view role_named(std::string_view name) {
  if (name == "human" || name == "user") {
    return "user";
  }
  for (const std::string_view machine : {"gpt", "assistant", "chatgpt", "bot", "model", "function_call"}) {
    if (name == machine) {
      return "assistant";
    }
  }
  return name == "observation" || name == "tool" || name == "function_response" ? "tool" : name;
}

}  // namespace

struct JsonRecord::Parser {
  dom::parser dom;
  dom::parser inner;  // of lists that stand in strings
  std::vector<std::string_view> values;
  std::vector<Message> messages;
  std::vector<std::optional<dom::object>> whole;  // the messages as they are, for templates
  std::deque<std::string> made;                   // values that are printed, contents that are joined
  std::string plain;                              // the record again, where a number was out of the fast parser's range

  std::string fields(const dom::object& object, RecordText& text, std::size_t count);
  std::string chat(const dom::object& object, RecordText& text, Record& record);
  std::string pair(const dom::object& object, RecordText& text, Record& record);
  std::string side(const dom::object& object, const RecordText& text, std::size_t field, std::string_view role);
  std::string list(const dom::element& element, const RecordText& text, std::size_t field);
  std::string message(const dom::element& element, const ReadOptions& options);
  std::string content(const dom::element& element, std::string_view& out);
  std::string_view calls(const dom::object& message);
  void finish(const jinja::Value& tools, std::size_t first_learned, RecordText& text, Record& record);
};

/// The values of the first `count` fields.
std::string JsonRecord::Parser::fields(const dom::object& object, RecordText& text, std::size_t count) {
  values.assign(text.fields().size(), {});
  for (std::size_t i = 0; i < count; ++i) {
    const std::optional<dom::element> element = find_path(object, text.fields()[i]);
    if (text.optional(i) && (!element || element->is_null())) {
      continue;
    }
    if (!element) {
      const bool chat = text.shape() == RecordText::Shape::text && (find(object, "messages") || find(object, "conversations"));
      return format(
          "no {}; {}{}", text.describe(i), keys_of(object),
          chat ? format("; data.messages_field = \"{}\" reads chats", find(object, "messages") ? "messages" : "conversations") : "");
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
  return "";
}

/// A string, null for nothing said, or a list of parts {type = "text", text}, as some chats have.
std::string JsonRecord::Parser::content(const dom::element& element, std::string_view& out) {
  if (element.is_string()) {
    out = element.get_string().value();
    return "";
  }
  if (element.is_null()) {
    out = "";
    return "";
  }
  if (!element.is_array()) {
    return format("content is {}, not a string", name_of(element.type()));
  }
  std::string& joined = made.emplace_back();
  const dom::array parts = element.get_array().value();  // a loop over the result itself would outlive it
  for (const dom::element part : parts) {
    std::string_view text;
    if (part.is_string()) {
      text = part.get_string().value();
    } else if (!part.is_object() || part.at_key("text").get(text) != simdjson::SUCCESS) {
      return "content has a part that is no text";
    }
    joined += text;
  }
  out = joined;
  return "";
}

/// Its tool calls as JSON, one a line; "" where it has none.
std::string_view JsonRecord::Parser::calls(const dom::object& message) {
  const std::optional<dom::element> list = find(message, "tool_calls");
  dom::array calls;
  if (!list || list->get(calls) != simdjson::SUCCESS || calls.size() == 0) {
    return "";
  }
  std::string& out = made.emplace_back();
  for (const dom::element call : calls) {
    dom::element function;
    out += out.empty() ? "" : "\n";
    out += simdjson::minify(call.is_object() && call.at_key("function").get(function) == simdjson::SUCCESS ? function : call);
  }
  return out;
}

std::string JsonRecord::Parser::message(const dom::element& element, const ReadOptions& options) {
  const std::size_t index = messages.size();
  dom::object object;
  if (element.get(object) != simdjson::SUCCESS) {
    return format("message {} is {}, not an object with role and content", index, name_of(element.type()));
  }
  const auto named = [&](const std::string& asked, const char* usual, const char* other) {
    return !asked.empty() ? asked : find(object, usual) || !find(object, other) ? std::string(usual) : std::string(other);
  };
  const std::string role_key = named(options.role_field, "role", "from");
  const std::string content_key = named(options.content_field, "content", "value");
  const std::optional<dom::element> role = find(object, role_key);
  const std::optional<dom::element> body = find(object, content_key);
  const std::string_view tool_calls = calls(object);
  if (!role || (!body && tool_calls.empty())) {
    return format("message {} has no {}; {}; data.{} names another", index, role ? content_key : role_key, keys_of(object),
                  role ? "content_field" : "role_field");
  }
  Message message;
  if (role->get(message.role) != simdjson::SUCCESS) {
    return format("message {}: {} is {}, not a string", index, role_key, name_of(role->type()));
  }
  if (role_key != "role") {
    message.role = role_named(message.role);
  }
  if (const std::string problem = body ? content(*body, message.content) : ""; !problem.empty()) {
    return format("message {}: {}", index, problem);
  }
  message.tool_calls = tool_calls;
  messages.push_back(message);
  whole.push_back(object);
  return "";
}

/// The messages of a list, or of one that stands in a string, as Parquet files have it.
std::string JsonRecord::Parser::list(const dom::element& element, const RecordText& text, std::size_t field) {
  dom::element list = element;
  std::string_view written;
  if (element.get(written) == simdjson::SUCCESS && trim(written).starts_with('[') &&
      inner.parse(simdjson::padded_string(written)).get(list) != simdjson::SUCCESS) {
    list = element;
  }
  if (!list.is_array()) {
    return format("the {} is {}, not a list of messages", text.describe(field), name_of(list.type()));
  }
  const dom::array elements = list.get_array().value();
  for (const dom::element each : elements) {
    if (std::string problem = message(each, text.options()); !problem.empty()) {
      return problem;
    }
  }
  return elements.size() == 0 ? format("the {} is an empty list", text.describe(field)) : "";
}

/// One side of a pair as messages: a list, or a text that `role` says.
std::string JsonRecord::Parser::side(const dom::object& object, const RecordText& text, std::size_t field, std::string_view role) {
  const std::optional<dom::element> element = find_path(object, text.fields()[field]);
  if (!element) {
    return format("no {}; {}", text.describe(field), keys_of(object));
  }
  std::string_view said;
  if (element->get(said) == simdjson::SUCCESS) {
    messages.push_back({role, said});
    whole.emplace_back();
    return "";
  }
  return element->is_array()
             ? list(*element, text, field)
             : format("the {} is {}, neither a string nor a list of messages", text.describe(field), name_of(element->type()));
}

std::string JsonRecord::Parser::pair(const dom::object& object, RecordText& text, Record& record) {
  const std::size_t last = text.fields().size() - 1;
  const auto is_list = [&](std::size_t field) {
    const std::optional<dom::element> element = find_path(object, text.fields()[field]);
    return element && element->is_array();
  };
  const bool made_prompt = !text.options().prompt_template.empty();
  if (!text.options().prompt_as_chat && !is_list(last) && (made_prompt || !is_list(0))) {
    std::string problem = fields(object, text, last + 1);
    if (problem.empty()) {
      text.from_fields(values, record);
    }
    return problem;
  }
  if (made_prompt) {
    if (std::string problem = fields(object, text, last); !problem.empty()) {
      return problem;
    }
    messages.push_back({"user", made.emplace_back(text.prompt_of(values))});
    whole.emplace_back();
  } else if (std::string problem = side(object, text, 0, "user"); !problem.empty()) {
    return problem;
  }
  const std::size_t first_learned = messages.size();
  std::string problem = side(object, text, last, "assistant");
  if (problem.empty()) {
    finish(jinja::None{}, first_learned, text, record);
  }
  return problem;
}

std::string JsonRecord::Parser::chat(const dom::object& object, RecordText& text, Record& record) {
  const std::optional<dom::element> found = find_path(object, text.fields()[0]);
  if (!found) {
    return format("no {}; {}", text.describe(0), keys_of(object));
  }
  if (std::string problem = list(*found, text, 0); !problem.empty()) {
    return problem;
  }
  jinja::Value tools = jinja::None{};
  if (text.fields().size() > 1) {
    std::optional<dom::element> given = find_path(object, text.fields()[1]);
    std::string_view written;
    if (given && given->get(written) == simdjson::SUCCESS && !trim(written).empty()) {
      tools = jinja::parse_value(written, "the " + text.describe(1), kNoMessage);
    } else if (given && given->is_array() && given->get_array().value().size() > 0) {
      tools = jinja::value_of(*given, kNoMessage);
    }
  }
  finish(tools, 0, text, record);
  return "";
}

/// A message as templates see it: with role and content under these names, without what is null, arguments of calls as objects.
static jinja::Value rich_message(const Message& message, const std::optional<dom::object>& object, jinja::Origin origin) {
  jinja::Dict out;
  out.put("role", jinja::Value::text(message.role, kNoMessage));
  out.put("content", jinja::Value::text(message.content, origin));
  if (!object) {
    return out;
  }
  for (const dom::key_value_pair member : *object) {
    const bool known = member.key == "role" || member.key == "content" || member.key == "from" || member.key == "value";
    if (!known && !member.value.is_null()) {
      out.set(jinja::Value::text(member.key, origin), jinja::value_of(member.value, origin));
    }
  }
  const jinja::Value* const calls = out.find("tool_calls");
  for (const jinja::Value& call : calls == nullptr || calls->list() == nullptr ? jinja::List() : *calls->list()) {
    jinja::Value function = call.dict() != nullptr && call.dict()->find("function") != nullptr ? *call.dict()->find("function") : call;
    const jinja::Value* const arguments = function.dict() == nullptr ? nullptr : function.dict()->find("arguments");
    if (arguments != nullptr && arguments->text() != nullptr && trim(arguments->text()->bytes).starts_with('{')) {
      function.dict()->put("arguments", jinja::parse_value(arguments->text()->bytes, "arguments of a tool call", origin));
    }
  }
  return out;
}

void JsonRecord::Parser::finish(const jinja::Value& tools, std::size_t first_learned, RecordText& text, Record& record) {
  if (!text.writer().is_template()) {
    text.from_messages(messages, first_learned, record);
    return;
  }
  RichChat chat;
  chat.tools = tools;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    chat.messages.push_back(rich_message(messages[i], whole[i], static_cast<jinja::Origin>(i + 1)));
  }
  text.from_messages(chat, first_learned, record);
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
  parser_->messages.clear();
  parser_->whole.clear();
  try {
    if (text_.chat()) {
      return parser_->chat(object, text_, record);
    }
    if (text_.shape() == RecordText::Shape::pair) {
      return parser_->pair(object, text_, record);
    }
    std::string problem = parser_->fields(object, text_, text_.fields().size());
    if (problem.empty()) {
      text_.from_fields(parser_->values, record);
    }
    return problem;
  } catch (const Error& error) {  // a template's raise_exception, tool calls that are refused
    if (error.code() != Code::data) {
      throw;
    }
    return error.what();
  }
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
