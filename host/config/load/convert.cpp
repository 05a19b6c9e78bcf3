#include "config/load/convert.h"

#include <algorithm>

#include "config/load/names.h"
#include "config/schema/read_value.h"
#include "core/text.h"

namespace kf::config {
namespace {

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

void Converter::give_up(const std::string& key) { broken_.insert(key); }

std::optional<Node> Converter::convert(const Node& node, const Row& row, const std::string& key) {
  const TypeRow& type = type_row(row.type);
  if (node.is_null() || is_null_word(node)) {
    if (row.optional) {
      return Node(std::monostate(), node.origin);
    }
    fault(key, node, format("cannot be empty; it is {}, {} by default", with_article(type.name), to_text(row.fallback)));
    return std::nullopt;
  }
  if (is_bare_flag(node) && !type.flag) {
    fault_at(key, node.origin, format("needs a value: --{}=VALUE", key));
    return std::nullopt;
  }
  std::optional<Node> out = type.convert(node, row, key, *this);
  if (!out) {
    return std::nullopt;
  }
  out->origin = node.origin;
  out->key_origin = node.key_origin;
  return row.check.experts_only || check(*out, row, key) ? out : std::nullopt;
}

Table Converter::fields(const Table& table, const Origin& origin, const std::vector<Row>& rows, const std::string& key) {
  std::vector<std::string> names;
  Table out;
  for (const Row& row : rows) {
    names.push_back(row.name);
    const Node* given = table.find(row.name);
    if (given == nullptr && row.required) {
      fault_at(key + "." + row.name, origin,
               format("[{}] must give '{}' ({}){}", key, row.name, type_row(row.type).name, row.doc.empty() ? "" : ": " + row.doc));
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

bool Converter::check(const Node& node, const Row& row, const std::string& key) {
  const bool fine = node.is_null() || type_row(row.type).check(node, row, key, *this);
  if (!fine) {
    broken_.insert(key);
  }
  return fine;
}

bool Converter::check_text(const Node& node, const Row& row, const std::string& key) {
  const auto& text = std::get<std::string>(node.value);
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
    fault(key, node, row.check.words() + hint);
  } else {
    fault(key, node,
          format("is not a registered {}{}{}", row.check.kind, hint,
                 allowed.empty() ? format("; no {} is registered here", row.check.kind)
                                 : format("{} have: {}", hint.empty() ? ";" : "", join(allowed, ", "))));
  }
  return false;
}

}  // namespace kf::config
