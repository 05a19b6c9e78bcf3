#include "sweep/columns.h"

#include <cmath>

#include "config/tree/json.h"
#include "core/error.h"

namespace kf::sweep {

std::int64_t integer(const SqlValue& value) { return std::get<std::int64_t>(value); }

std::string text(const SqlValue& value) {
  const auto* found = std::get_if<std::string>(&value);
  return found != nullptr ? *found : "";
}

double real(const SqlValue& value) {
  const auto* whole = std::get_if<std::int64_t>(&value);
  return whole != nullptr ? static_cast<double>(*whole) : std::get<double>(value);
}

Stored stored(double number) {
  if (std::isnan(number)) {
    return {{}, "NAN"};
  }
  return std::isinf(number) ? Stored{{}, number > 0 ? "INF_POS" : "INF_NEG"} : Stored{number, "FINITE"};
}

double from_stored(const SqlValue& value, const std::string& type) {
  if (type == "FINITE") {
    return real(value);
  }
  if (type == "NAN") {
    return std::nan("");
  }
  return type == "INF_POS" ? INFINITY : -INFINITY;
}

config::Node json(const std::string& value) {
  try {
    return config::parse_json(value, "an attribute", config::JsonStyle::exact);
  } catch (const Error&) {
    return config::Node(value);
  }
}

std::string exact_json(const config::Node& value) { return config::to_json(value, config::JsonStyle::exact); }

}  // namespace kf::sweep
