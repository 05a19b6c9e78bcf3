#include "config/tree/json.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/c_locale.h"
#include "core/error.h"
#include "core/text.h"

namespace kf::config {
namespace {

// Tags of exact style. A key of the tree's own that begins with '$' is written with one more, so the two cannot be confused.
constexpr std::string_view kReal = "$real", kBytes = "$bytes";

std::string hex_of(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const char c : bytes) {
    out += kDigits[static_cast<unsigned char>(c) >> 4];
    out += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return out;
}

std::optional<std::string> bytes_of(std::string_view hex) {
  std::string out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    unsigned value = 0;
    const auto [end, error] = std::from_chars(hex.data() + i, hex.data() + i + 2, value, 16);
    if (error != std::errc{} || end != hex.data() + i + 2) {
      return std::nullopt;
    }
    out += static_cast<char>(value);
  }
  return hex.size() % 2 == 0 ? std::optional(out) : std::nullopt;
}

class Writer {
 public:
  Writer(JsonStyle style, int indent) : style_(style), indent_(indent) {}

  std::string take() { return std::move(out_); }

  void write(const Node& node) {
    std::visit([this](const auto& value) { put(value); }, node.value);
  }

 private:
  void put(std::monostate) { out_ += "null"; }
  void put(bool value) { out_ += value ? "true" : "false"; }
  void put(std::int64_t value) { out_ += std::to_string(value); }
  void put(double value) {
    const std::string text = json_number(value);
    tagged(kReal, text, style_ == JsonStyle::exact && !std::isfinite(value));
  }
  void put(const std::string& value) {
    if (is_utf8(value)) {
      out_ += kf::quoted(value);
      return;
    }
    KF_CHECK(style_ == JsonStyle::exact, Code::other, "{} is not UTF-8 and cannot be written as JSON", kf::quoted(value));
    tagged(kBytes, kf::quoted(hex_of(value)), true);
  }
  void put(const Array& values) {
    out_ += '[';
    ++depth_;
    for (const Node& value : values) {
      next(&value == &values.front());
      write(value);
    }
    close(values.empty(), ']');
  }
  void put(const Table& table) {
    out_ += '{';
    ++depth_;
    bool first = true;
    for (const auto& [key, value] : table) {
      KF_CHECK(is_utf8(key), Code::other, "the key {} is not UTF-8 and cannot be written as JSON", kf::quoted(key));
      next(first);
      first = false;
      out_ += kf::quoted(style_ == JsonStyle::exact && key.starts_with('$') ? '$' + key : key) + ": ";
      write(value);
    }
    close(table.empty(), '}');
  }

  void tagged(std::string_view tag, const std::string& text, bool on) { out_ += on ? "{" + kf::quoted(tag) + ": " + text + "}" : text; }

  void next(bool first) {
    if (!first) {
      out_ += indent_ > 0 ? "," : ", ";
    }
    line();
  }
  void close(bool empty, char bracket) {
    --depth_;
    if (!empty) {
      line();
    }
    out_ += bracket;
  }
  void line() {
    if (indent_ > 0) {
      out_ += '\n' + std::string(static_cast<std::size_t>(indent_ * depth_), ' ');
    }
  }

  JsonStyle style_;
  int indent_;
  int depth_ = 0;
  std::string out_;
};

using json = nlohmann::json;

/// Builds the tree from the parser's events: no second tree, and repeated keys are seen.
class Reader final : public nlohmann::json_sax<json> {
 public:
  Reader(const std::string& name, JsonStyle style) : name_(name), style_(style) {}

  Node take() { return std::move(root_); }

  bool null() override { return put(std::monostate{}); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(std::int64_t{value}); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      wrong("the integer " + std::to_string(value) + " does not fit in 64 bits");
    }
    return put(static_cast<std::int64_t>(value));
  }
  bool number_float(number_float_t value, const string_t& text) override {
    if (text.find_first_not_of("-0123456789") == string_t::npos) {
      wrong("the integer " + text + " does not fit in 64 bits");
    }
    return put(value);
  }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t&) override { return false; }

  bool start_object(std::size_t) override { return open(Table{}); }
  bool start_array(std::size_t) override { return open(Array{}); }
  bool end_array() override {
    open_.pop_back();
    return true;
  }
  bool end_object() override {
    Node* const node = open_.back();
    open_.pop_back();
    if (style_ == JsonStyle::exact) {
      undo_tags(*node);
    }
    return true;
  }
  bool key(string_t& key) override {
    Table& table = *open_.back()->table();
    if (table.find(key) != nullptr) {
      wrong("the key " + kf::quoted(key) + " is given twice");
    }
    key_ = key;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    fail(Code::data, "{}: not valid JSON (at byte {})", name_, position);
  }

 private:
  [[noreturn]] void wrong(const std::string& what) const { fail(Code::data, "{}: {}", name_, what); }

  Node& place(Node::Value value) {
    Node node(std::move(value), Origin{.kind = Origin::Kind::fallback, .file = name_, .line = 0, .column = 0, .text = {}});
    if (open_.empty()) {
      return root_ = std::move(node);
    }
    if (Array* const array = open_.back()->array()) {
      return array->emplace_back(std::move(node));
    }
    return (*open_.back()->table())[key_] = std::move(node);
  }
  bool put(Node::Value value) {
    place(std::move(value));
    return true;
  }
  bool open(Node::Value value) {
    if (open_.size() >= 200) {
      wrong("nested deeper than 200 levels");
    }
    open_.push_back(&place(std::move(value)));  // stays where it is: its parent gets no other child while it is open
    return true;
  }

  void undo_tags(Node& node) const {
    for (auto& [key, value] : *node.table()) {
      if (key.starts_with("$$")) {
        key.erase(0, 1);
      } else if (key.starts_with('$')) {
        const std::optional<Node::Value> tagged = untag(key, value);
        if (!tagged || node.table()->size() != 1) {
          wrong("the entry " + kf::quoted(key) + " is no value that this program writes");
        }
        node.value = *tagged;
        return;
      }
    }
  }

  static std::optional<Node::Value> untag(std::string_view tag, const Node& content) {
    constexpr double kInf = std::numeric_limits<double>::infinity();
    const std::string* const text = std::get_if<std::string>(&content.value);
    if (text != nullptr && tag == kReal) {
      if (*text == "inf" || *text == "-inf") {
        return *text == "inf" ? kInf : -kInf;
      }
      return *text == "nan" ? std::optional<Node::Value>(std::numeric_limits<double>::quiet_NaN()) : std::nullopt;
    }
    if (text != nullptr && tag == kBytes) {
      if (const auto bytes = bytes_of(*text)) {
        return Node::Value(*bytes);
      }
    }
    return std::nullopt;
  }

  const std::string& name_;
  JsonStyle style_;
  Node root_;
  std::vector<Node*> open_;
  std::string key_;
};

}  // namespace

std::string json_number(double value) {
  std::string text = kf::to_text(value);
  if (!std::isfinite(value)) {
    return kf::quoted(text);
  }
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string to_json(const Node& node, JsonStyle style, int indent) {
  Writer writer(style, indent);
  writer.write(node);
  return writer.take();
}

std::string to_cell(const Node& node) {
  if (node.is_null()) {
    return "";
  }
  if (const auto* const text = std::get_if<std::string>(&node.value)) {
    return *text;
  }
  const auto* const real = std::get_if<double>(&node.value);
  return real != nullptr ? kf::to_text(*real) : to_json(node);
}

Node parse_json(std::string_view text, const std::string& name, JsonStyle style) {
  Reader reader(name, style);
  const CLocale plain;  // the parser reads numbers with strtod
  json::sax_parse(text.begin(), text.end(), &reader);
  return reader.take();
}

}  // namespace kf::config
