#include "config/load/convert.h"

#include <algorithm>
#include <cmath>

#include "config/load/names.h"
#include "config/plan/derived.h"
#include "config/tree/literal.h"
#include "core/text.h"

namespace kf::config {
namespace {

constexpr double kExact = 9007199254740992.0;  // 2^53: doubles hold every integer up to here

/// A value, or what is wrong with it.
struct Result {
  std::optional<Node> node;
  std::string words;
};

Result good(Node::Value value) { return {Node(std::move(value)), ""}; }
Result bad(std::string words) { return {std::nullopt, std::move(words)}; }

std::string with_article(const std::string& noun) {
  return noun.starts_with("steps") ? noun : (noun.starts_with("integer") ? "an " : "a ") + noun;
}

const std::string* loose_text(const Node& node) { return node.loose ? std::get_if<std::string>(&node.value) : nullptr; }

/// In a file, a number or boolean in quotes is an error; say what to do about it.
std::string unquote_hint(const Node& node, bool would_fit) { return !node.loose && would_fit ? "; write it without quotes" : ""; }

Result to_boolean(const Node& node) {
  if (const bool* value = std::get_if<bool>(&node.value)) {
    return good(*value);
  }
  const std::string* text = std::get_if<std::string>(&node.value);
  const std::optional<bool> parsed = text ? parse_bool(*text) : std::nullopt;
  if (node.loose && parsed) {
    return good(*parsed);
  }
  return bad("is not a boolean; write true or false");
}

Result real_to_integer(double value) {
  if (std::floor(value) != value || std::isinf(value)) {
    return bad("is not an integer");
  }
  if (std::fabs(value) > kExact) {
    return bad("is past 2^53, where floating-point numbers are no longer exact; write all digits of the integer");
  }
  return good(static_cast<std::int64_t>(value));
}

Result to_integer(const Node& node) {
  if (const auto* value = std::get_if<std::int64_t>(&node.value)) {
    return good(*value);
  }
  if (const double* value = std::get_if<double>(&node.value)) {
    return real_to_integer(*value);
  }
  if (const std::string* text = std::get_if<std::string>(&node.value)) {
    const std::optional<std::int64_t> integer = parse_int(*text);
    if (node.loose && integer) {
      return good(*integer);
    }
    const std::optional<double> real = parse_real(*text);
    if (node.loose && real && !is_past_int(*text)) {
      return real_to_integer(*real);
    }
    return is_past_int(*text) || is_past_real(*text) ? bad("does not fit: integers go from -2^63 to 2^63 - 1")
                                                     : bad("is not an integer" + unquote_hint(node, integer.has_value()));
  }
  return bad("is not an integer");
}

Result integer_to_real(std::int64_t value) {
  const auto real = static_cast<double>(value);
  if (static_cast<long double>(real) != static_cast<long double>(value)) {  // whose 64 bits of mantissa hold either
    return bad("cannot be held exactly by a floating-point number");
  }
  return good(real);
}

Result to_real(const Node& node) {
  if (const double* value = std::get_if<double>(&node.value)) {
    return good(*value);
  }
  if (const auto* value = std::get_if<std::int64_t>(&node.value)) {
    return integer_to_real(*value);
  }
  if (const std::string* text = std::get_if<std::string>(&node.value)) {
    const std::optional<double> real = parse_real(*text);
    if (node.loose && real) {
      return good(*real);
    }
    return is_past_real(*text) ? bad("does not fit: numbers go from 4.9e-324 to 1.8e308")
                               : bad("is not a number" + unquote_hint(node, real.has_value()));
  }
  return bad("is not a number");
}

/// A real past 1 that is an integer counts steps, as in every integer field; one in (0, 1] is a share.
Result real_to_duration(double value) {
  if (value > 0 && value <= 1) {
    return good(value);
  }
  Result steps = real_to_integer(value);
  return steps.node ? steps : bad("is neither a number of steps nor a share in (0, 1]");
}

Result to_duration(const Node& node) {
  if (const double* value = std::get_if<double>(&node.value)) {
    return real_to_duration(*value);
  }
  if (const std::string* text = loose_text(node); text && !parse_int(*text)) {
    if (const std::optional<double> real = parse_real(*text)) {
      return real_to_duration(*real);
    }
  }
  return to_integer(node);
}

Result to_string(const Node& node) {
  if (const std::string* value = std::get_if<std::string>(&node.value)) {
    return is_utf8(*value) ? good(*value) : bad("is not valid UTF-8");
  }
  if (node.loose && node.origin.kind == Origin::Kind::cli && (node.array() || node.table())) {
    return good(node.origin.text);  // "[0-9]" and "{a,b}" are literals only where one is wanted
  }
  return bad(node.table() || node.array() ? "is not a string" : "is not a string; put it in quotes");
}

/// An element of a part's own list: what it looks like.
Result to_any(const Node& node) {
  const std::string* text = loose_text(node);
  if (!text) {
    return node.table() || node.is_null() ? bad("cannot stand in a list of this kind") : Result{node, ""};
  }
  if (const std::optional<std::int64_t> integer = parse_int(*text)) {
    return good(*integer);
  }
  if (const std::optional<double> real = parse_real(*text)) {
    return good(*real);
  }
  return good(*text);
}

Result convert_scalar(const Node& node, Type type) {
  switch (type) {
    case Type::boolean: return to_boolean(node);
    case Type::integer: return to_integer(node);
    case Type::real: return to_real(node);
    case Type::duration: return to_duration(node);
    case Type::text: return to_string(node);
    default: return to_any(node);
  }
}

Type item_type(Type type) {
  switch (type) {
    case Type::pair:
    case Type::reals: return Type::real;
    case Type::integers: return Type::integer;
    case Type::texts: return Type::text;
    case Type::durations: return Type::duration;
    default: return Type::list;
  }
}

bool is_scalar(Type type) {
  return type == Type::boolean || type == Type::integer || type == Type::real || type == Type::duration || type == Type::text;
}

bool is_null_word(const Node& node) {
  const std::string* text = loose_text(node);
  if (!text || (*text != "None" && *text != "null")) {
    return false;
  }
  return node.origin.kind != Origin::Kind::cli || node.origin.text == *text;  // "'None'" in quotes is text
}

/// `--section.key` alone, which is true; `--section.key=true` is text.
bool is_bare_flag(const Node& node) {
  return node.loose && node.origin.kind == Origin::Kind::cli && std::holds_alternative<bool>(node.value);
}

/// A value of a kind that may be one or several, written as one.
bool is_single(const Node& node, const Row& row) {
  const std::string* const text = loose_text(node);
  return row.type == Type::durations && !node.array() && !(text != nullptr && text->find(',') != std::string::npos);
}

/// The items of a list, however it was written; nothing when it is none. Lua's {} is an empty table.
std::optional<Array> items_of(const Node& node, const Row& row) {
  if (node.array()) {
    return *node.array();
  }
  if (const Table* table = node.table()) {
    if (table->empty()) {
      return Array();
    }
    return row.type == Type::records ? std::optional(Array{node}) : std::nullopt;
  }
  if (const std::string* text = loose_text(node); text && text->find(',') != std::string::npos && node.origin.text == *text) {
    if (std::optional<Array> bare = parse_bare_list(*text, node.origin)) {
      return bare;
    }
  }
  return row.type == Type::reals || row.type == Type::integers || row.type == Type::texts || row.type == Type::list
             ? std::optional(Array{node})
             : std::nullopt;
}

}  // namespace

std::string subject(const std::string& key, const Node& value, const Origin& origin) {
  return origin.kind == Origin::Kind::cli && origin.file == "--" + key ? brief(value) : format("{} ({})", key, brief(value));
}

void Converter::fault_at(const std::string& key, const Origin& origin, const std::string& message) {
  broken_.insert(key);
  report_.problems.push_back({origin, message});
}

void Converter::fault(const std::string& key, const Node& node, const std::string& words) {
  fault_at(key, node.origin, format("{} {}", subject(key, node, node.origin), words));
}

std::optional<Node> Converter::convert(const Node& node, const Row& row, const std::string& key) {
  if (node.is_null() || is_null_word(node)) {
    if (row.optional) {
      return Node(std::monostate(), node.origin);
    }
    fault(key, node, format("cannot be empty; it is {}, {} by default", with_article(type_name(row.type)), to_text(row.fallback)));
    return std::nullopt;
  }
  if (is_bare_flag(node) && row.type != Type::boolean) {
    fault_at(key, node.origin, format("needs a value: --{}=VALUE", key));
    return std::nullopt;
  }
  std::optional<Node> out;
  if (is_scalar(row.type) || is_single(node, row)) {
    Result result = convert_scalar(node, row.type == Type::durations ? Type::duration : row.type);
    if (!result.node) {
      const bool choices = row.type == Type::text && !row.check.choices.empty();  // shuffle = false: quotes alone would not help
      fault(key, node, choices ? row.check.words() : result.words);
      return std::nullopt;
    }
    out = std::move(result.node);
  } else if (row.type == Type::record || row.type == Type::numbers) {
    const Table* table = node.table();
    const bool empty_list = node.array() && node.array()->empty();
    if (!table && !empty_list) {
      fault(key, node, "is not a table");
      return std::nullopt;
    }
    const Table given = table ? *table : Table();
    out = row.type == Type::record ? Node(convert_table(given, node.origin, row.fields, key)) : convert_numbers(given, key, node);
  } else {
    const std::optional<Array> items = items_of(node, row);
    if (!items) {
      fault(
          key, node,
          row.type == Type::pair ? "is not a pair of numbers; write two, like [0.9, 0.95]" : "is not " + with_article(type_name(row.type)));
      return std::nullopt;
    }
    out = convert_items(*items, row, key, node);
  }
  if (!out) {
    return std::nullopt;
  }
  out->origin = node.origin;
  out->key_origin = node.key_origin;
  return row.check.experts_only || check(*out, row, key, node.origin) ? out : std::nullopt;
}

std::optional<Node> Converter::convert_items(const Array& items, const Row& row, const std::string& key, const Node& node) {
  if (row.type == Type::pair && items.size() != 2) {
    fault(key, node, "needs two values, like [0.9, 0.95]");
    return std::nullopt;
  }
  Array out;
  bool complete = true;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string item_key = format("{}[{}]", key, i);
    if (row.type == Type::records) {
      if (!items[i].table()) {
        fault(item_key, items[i], "is not a table");
        complete = false;
        continue;
      }
      out.emplace_back(convert_table(*items[i].table(), items[i].origin, row.fields, item_key), items[i].origin);
      continue;
    }
    Result result = convert_scalar(items[i], item_type(row.type));
    if (!result.node) {
      fault(item_key, items[i], result.words);
      complete = false;
      continue;
    }
    out.push_back(std::move(*result.node));
    out.back().origin = items[i].origin;
  }
  if (!complete) {
    broken_.insert(key);
    return std::nullopt;
  }
  return Node(std::move(out));
}

std::optional<Node> Converter::convert_numbers(const Table& table, const std::string& key, const Node&) {
  Table out;
  bool complete = true;
  for (const auto& [name, item] : table) {
    Result result = to_real(item);
    if (!result.node) {
      fault(key + "." + name, item, result.words);
      complete = false;
      continue;
    }
    result.node->origin = item.origin;
    out[name] = std::move(*result.node);
  }
  if (!complete) {
    broken_.insert(key);
    return std::nullopt;
  }
  return Node(std::move(out));
}

Table Converter::convert_table(const Table& table, const Origin& origin, const std::vector<Row>& fields, const std::string& key) {
  std::vector<std::string> names;
  Table out;
  for (const Row& row : fields) {
    names.push_back(row.name);
    const Node* given = table.find(row.name);
    if (given == nullptr && row.required) {
      fault_at(key + "." + row.name, origin,
               format("[{}] must give '{}' ({}){}", key, row.name, type_name(row.type), row.doc.empty() ? "" : ": " + row.doc));
    }
    const std::optional<Node> value = given ? convert(*given, row, key + "." + row.name) : std::nullopt;
    out[row.name] = value.value_or(row.fallback);
  }
  for (const auto& [name, node] : table) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      fault_at(key + "." + name, node.key_origin, unknown_field(key, name, names));
    }
  }
  return out;
}

bool Converter::check(const Node& node, const Row& row, const std::string& key, const Origin& origin) {
  if (const std::string* text = std::get_if<std::string>(&node.value)) {
    return check_text(*text, row, key, origin);
  }
  bool fine = true;
  const auto check_number = [&](double value, const std::string& name, const Origin& at) {
    const bool holds = (!row.check.min && !row.check.max) || row.check.holds(value);
    if (!holds) {
      const std::string infinite = std::isinf(value) && !row.check.infinite ? " and finite" : "";
      fault_at(name, at,
               format("{} {}{}", subject(name, node.array() || node.table() ? Node(value) : node, at), row.check.words(), infinite));
      fine = false;
    }
  };
  if (const auto* integer = std::get_if<std::int64_t>(&node.value)) {
    check_number(static_cast<double>(*integer), key, origin);
  } else if (const double* real = std::get_if<double>(&node.value)) {
    check_number(*real, key, origin);
  } else if (node.array() && row.type != Type::texts && row.type != Type::records) {
    for (std::size_t i = 0; i < node.array()->size(); ++i) {
      const Node& item = (*node.array())[i];
      if (const double* value = std::get_if<double>(&item.value)) {
        check_number(*value, format("{}[{}]", key, i), item.origin);
      } else if (const auto* whole = std::get_if<std::int64_t>(&item.value)) {
        check_number(static_cast<double>(*whole), format("{}[{}]", key, i), item.origin);
      }
    }
  } else if (node.table() && row.type == Type::numbers) {
    for (const auto& [name, item] : *node.table()) {
      check_number(std::get<double>(item.value), key + "." + name, item.origin);
    }
  } else if (node.array() && row.type == Type::texts) {
    for (const Node& item : *node.array()) {
      fine = check_text(std::get<std::string>(item.value), row, key, item.origin) && fine;
    }
  }
  if (!fine) {
    broken_.insert(key);
  }
  return fine;
}

bool Converter::check_text(const std::string& text, const Row& row, const std::string& key, const Origin& origin) {
  if (text.empty() && row.fallback == Node(std::string())) {
    return true;  // none is chosen
  }
  std::vector<std::string> allowed = row.check.choices;
  if (!row.check.kind.empty()) {
    allowed = part_names(catalog_, row.check.kind);
  }
  const bool anything = row.check.kind.empty() ? allowed.empty() : allowed.empty() && !catalog_.contains(row.check.kind);
  if (anything || std::find(allowed.begin(), allowed.end(), text) != allowed.end()) {
    return true;
  }
  const std::string near = text.size() <= 64 ? nearest(text, allowed) : "";
  const std::string hint = near.empty() ? "" : format("; did you mean '{}'?", near);
  if (row.check.kind.empty()) {
    fault_at(key, origin, format("{} {}{}", subject(key, Node(text), origin), row.check.words(), hint));
  } else {
    fault_at(key, origin,
             format("{} is not a registered {}{}{}", subject(key, Node(text), origin), row.check.kind, hint,
                    allowed.empty() ? format("; no {} is registered here", row.check.kind)
                                    : format("{} have: {}", hint.empty() ? ";" : "", join(allowed, ", "))));
  }
  return false;
}

}  // namespace kf::config
