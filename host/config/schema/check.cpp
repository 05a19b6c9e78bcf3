#include <cmath>

#include "config/schema/schema.h"
#include "core/text.h"

namespace kf::config {
namespace {

std::string range_words(const Check& check) {
  if (check.min && check.max) {
    return format("must be in {}{}, {}{}", check.above_min ? '(' : '[', *check.min, *check.max, check.below_max ? ')' : ']');
  }
  if (check.max) {
    return format("must be {} {}", check.below_max ? "<" : "<=", *check.max);
  }
  if (*check.min == 0) {
    return check.above_min ? "must be positive" : "must be non-negative (>= 0)";
  }
  return format("must be {} {}", check.above_min ? ">" : ">=", *check.min);
}

}  // namespace

Check Check::with_experts() const {
  Check out = *this;
  out.experts_only = true;
  return out;
}

Check Check::or_infinite() const {
  Check out = *this;
  out.infinite = true;
  return out;
}

Check Check::or_auto() const {
  Check out = *this;
  out.automatic = true;
  return out;
}

Check Check::because(std::string why) const {
  Check out = *this;
  out.reason = std::move(why);
  return out;
}

bool Check::holds(double value) const {
  if (automatic && value == -1) {
    return true;
  }
  if (std::isnan(value) || (std::isinf(value) && !infinite)) {
    return false;
  }
  const bool low = !min || (above_min ? value > *min : value >= *min);
  const bool high = !max || (below_max ? value < *max : value <= *max);
  return low && high;
}

std::string Check::words() const {
  if (!choices.empty()) {
    return "must be one of " + join(choices, ", ");
  }
  if (!kind.empty()) {
    return "must be a registered " + kind;
  }
  if (!min && !max) {
    return "";
  }
  const std::string bounds = automatic ? "must be -1 (automatic) or >= " + kf::to_text(*min) : range_words(*this);
  return reason.empty() ? bounds : bounds + "; " + reason;
}

Check any() { return {}; }

Check above(double bound) {
  Check out;
  out.min = bound;
  out.above_min = true;
  return out;
}

Check at_least(double bound) {
  Check out;
  out.min = bound;
  return out;
}

Check between(double low, double high) {
  Check out = at_least(low);
  out.max = high;
  return out;
}

Check inside(double low, double high) {
  Check out = between(low, high);
  out.above_min = out.below_max = true;
  return out;
}

Check from_below(double low, double high) {
  Check out = between(low, high);
  out.below_max = true;
  return out;
}

Check one_of(std::vector<std::string> choices) {
  Check out;
  out.choices = std::move(choices);
  return out;
}

Check registered(std::string kind) {
  Check out;
  out.kind = std::move(kind);
  return out;
}

}  // namespace kf::config
