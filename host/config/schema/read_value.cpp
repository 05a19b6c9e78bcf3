#include "config/schema/read_value.h"

#include <cmath>

#include "config/tree/literal.h"
#include "core/text.h"

namespace kf::config {
namespace {

constexpr double kExact = 9007199254740992.0;  // 2^53: doubles hold every integer up to here

ReadValue good(Node::Value value) { return {Node(std::move(value)), ""}; }
ReadValue bad(std::string words) { return {std::nullopt, std::move(words)}; }

/// In a file, a number or boolean in quotes is an error; say what to do about it.
std::string unquote_hint(const Node& node, bool would_fit) { return !node.loose && would_fit ? "; write it without quotes" : ""; }

ReadValue real_to_integer(double value) {
  if (std::floor(value) != value || std::isinf(value)) {
    return bad("is not an integer");
  }
  if (std::fabs(value) > kExact) {
    return bad("is past 2^53, where floating-point numbers are no longer exact; write all digits of the integer");
  }
  return good(static_cast<std::int64_t>(value));
}

ReadValue integer_to_real(std::int64_t value) {
  const auto real = static_cast<double>(value);
  if (static_cast<long double>(real) != static_cast<long double>(value)) {  // whose 64 bits of mantissa hold either
    return bad("cannot be held exactly by a floating-point number");
  }
  return good(real);
}

/// A real past 1 that is an integer counts steps, as in every integer field; one in (0, 1] is a share.
ReadValue real_to_duration(double value) {
  if (value > 0 && value <= 1) {
    return good(value);
  }
  ReadValue steps = real_to_integer(value);
  return steps.node ? steps : bad("is neither a number of steps nor a share in (0, 1]");
}

}  // namespace

const std::string* loose_text(const Node& node) { return node.loose ? std::get_if<std::string>(&node.value) : nullptr; }

ReadValue read_boolean(const Node& node) {
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

ReadValue read_integer(const Node& node) {
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

ReadValue read_real(const Node& node) {
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

ReadValue read_duration(const Node& node) {
  if (const double* value = std::get_if<double>(&node.value)) {
    return real_to_duration(*value);
  }
  if (const std::string* text = loose_text(node); text && !parse_int(*text)) {
    if (const std::optional<double> real = parse_real(*text)) {
      return real_to_duration(*real);
    }
  }
  return read_integer(node);
}

ReadValue read_text(const Node& node) {
  if (const std::string* value = std::get_if<std::string>(&node.value)) {
    return is_utf8(*value) ? good(*value) : bad("is not valid UTF-8");
  }
  if (node.loose && node.origin.kind == Origin::Kind::cli && (node.array() || node.table())) {
    return good(node.origin.text);  // "[0-9]" and "{a,b}" are literals only where one is wanted
  }
  return bad(node.table() || node.array() ? "is not a string" : "is not a string; put it in quotes");
}

ReadValue read_any(const Node& node) {
  const std::string* text = loose_text(node);
  if (!text) {
    return node.table() || node.is_null() ? bad("cannot stand in a list of this kind") : ReadValue{node, ""};
  }
  if (const std::optional<std::int64_t> integer = parse_int(*text)) {
    return good(*integer);
  }
  if (const std::optional<double> real = parse_real(*text)) {
    return good(*real);
  }
  return good(*text);
}

}  // namespace kf::config
