#include "sweep/distribution.h"

#include <algorithm>
#include <cmath>

#include "config/tree/json.h"
#include "core/error.h"
#include "sweep/decimal.h"

namespace kf::sweep {
namespace {

using config::Array;
using config::Node;
using config::Table;

double number(const Table& attributes, const char* key, double fallback) {
  const Node* node = attributes.find(key);
  if (node == nullptr || node->is_null()) {
    return fallback;
  }
  if (const auto* integer = std::get_if<std::int64_t>(&node->value)) {
    return static_cast<double>(*integer);
  }
  const auto* real = std::get_if<double>(&node->value);
  KF_CHECK(real != nullptr, Code::data, "a distribution's {} is no number", key);
  return *real;
}

bool flag(const Table& attributes, const char* key) {
  const Node* node = attributes.find(key);
  const bool* value = node != nullptr ? std::get_if<bool>(&node->value) : nullptr;
  return value != nullptr && *value;
}

Node as_integer(double value) { return Node(static_cast<std::int64_t>(value)); }

}  // namespace

Distribution Distribution::real(double low, double high, double step, bool log) {
  Distribution out;
  out.low = low;
  out.high = step > 0 ? steps_between(low, high, step).high : high;
  out.step = step;
  out.log = log;
  return out;
}

Distribution Distribution::integer(std::int64_t low, std::int64_t high, std::int64_t step, bool log) {
  Distribution out;
  out.kind = Kind::integer;
  out.low = static_cast<double>(low);
  const std::int64_t steps = (high - low) / step;
  out.high = static_cast<double>(low + steps * step);
  out.step = static_cast<double>(step);
  out.log = log;
  return out;
}

Distribution Distribution::choice(std::vector<Node> choices) {
  Distribution out;
  out.kind = Kind::choice;
  out.choices = std::move(choices);
  return out;
}

std::optional<std::int64_t> Distribution::count() const {
  if (kind == Kind::choice) {
    return static_cast<std::int64_t>(choices.size());
  }
  if (step <= 0) {
    return low == high ? std::optional<std::int64_t>(1) : std::nullopt;
  }
  return steps_between(low, high, step).count + 1;
}

double Distribution::at(std::int64_t index) const {
  return kind == Kind::choice ? static_cast<double>(index) : std::clamp(low + static_cast<double>(index) * step, low, high);
}

bool Distribution::single() const { return count() == 1; }

bool Distribution::contains(double value) const {
  if (kind == Kind::choice) {
    return value >= 0 && value < static_cast<double>(choices.size()) && value == std::floor(value);
  }
  const double steps = step > 0 ? (value - low) / step : 0;
  return value >= low && value <= high && std::abs(steps - std::round(steps)) < 1e-8;
}

double Distribution::nearest(double value) const {
  if (kind == Kind::choice) {
    return std::clamp(std::round(value), 0.0, static_cast<double>(choices.size()) - 1);
  }
  if (step <= 0) {
    return std::clamp(value, low, high);
  }
  // What is drawn beyond the bounds (half a step of room) is the outermost step, not the bound itself, which rounding may set apart from
  // it.
  const double last = static_cast<double>(*count() - 1);
  return at(static_cast<std::int64_t>(std::clamp(std::nearbyint((value - low) / step), 0.0, last)));
}

Node Distribution::value(double stored) const {
  switch (kind) {
    case Kind::real: return Node(stored);
    case Kind::integer: return as_integer(stored);
    case Kind::choice: return choices.at(static_cast<std::size_t>(stored));
  }
  return {};
}

std::string Distribution::to_json() const {
  Table attributes;
  if (kind == Kind::choice) {
    attributes["choices"] = Node(Array(choices));
  } else if (kind == Kind::integer) {
    attributes["log"] = Node(log);
    attributes["step"] = as_integer(step);
    attributes["low"] = as_integer(low);
    attributes["high"] = as_integer(high);
  } else {
    attributes["step"] = step > 0 ? Node(step) : Node();
    attributes["low"] = Node(low);
    attributes["high"] = Node(high);
    attributes["log"] = Node(log);
  }
  Table out;
  out["name"] = Node(std::string(kind == Kind::choice    ? "CategoricalDistribution"
                                 : kind == Kind::integer ? "IntDistribution"
                                                         : "FloatDistribution"));
  out["attributes"] = Node(std::move(attributes));
  return config::to_json(Node(std::move(out)));
}

Distribution Distribution::from_json(std::string_view text) {
  const Node node = config::parse_json(text, "a distribution");
  const Table* table = node.table();
  const Node* name_node = table != nullptr ? table->find("name") : nullptr;
  const Node* attributes_node = table != nullptr ? table->find("attributes") : nullptr;
  const auto* name = name_node != nullptr ? std::get_if<std::string>(&name_node->value) : nullptr;
  const Table* attributes = attributes_node != nullptr ? attributes_node->table() : nullptr;
  KF_CHECK(name != nullptr && attributes != nullptr, Code::data, "{} is no distribution of Optuna's", text);
  Distribution out;
  if (*name == "CategoricalDistribution") {
    const Node* choices = attributes->find("choices");
    KF_CHECK(choices != nullptr && choices->array() != nullptr, Code::data, "{} has no choices", text);
    return choice(*choices->array());
  }
  const bool integers = name->starts_with("Int");
  KF_CHECK(integers || name->find("niform") != std::string::npos || *name == "FloatDistribution", Code::data, "unknown distribution {}",
           *name);
  out.kind = integers ? Kind::integer : Kind::real;
  out.low = number(*attributes, "low", 0);
  out.high = number(*attributes, "high", 0);
  out.step = number(*attributes, "step", number(*attributes, "q", integers ? 1 : 0));
  out.log = flag(*attributes, "log") || name->find("LogUniform") != std::string::npos;
  return out;
}

std::string Distribution::describe() const {
  if (kind == Kind::choice) {
    std::vector<std::string> names;
    for (const Node& node : choices) {
      const auto* text = std::get_if<std::string>(&node.value);
      names.push_back(text != nullptr ? *text : config::to_text(node));
    }
    return format("choice({})", join(names, ", "));
  }
  const std::string bounds = format("{}, {}", low, high);
  if (kind == Kind::integer) {
    return format(log ? "lograndint({})" : step > 1 ? "randint({}, {})" : "randint({})", bounds, step);
  }
  return format(step > 0 ? "quniform({}, {})" : log ? "loguniform({})" : "uniform({})", bounds, step);
}

}  // namespace kf::sweep
