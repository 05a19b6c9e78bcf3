#pragma once
// What one parameter of a sweep may be, in the terms of Optuna's storage: every value is a double there, of a choice its index.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/tree/node.h"

namespace kf::sweep {

struct Distribution {
  enum class Kind { real, integer, choice };
  Kind kind = Kind::real;
  double low = 0;
  double high = 0;                    // inclusive
  double step = 0;                    // 0: every real number between the bounds; integers have 1 or more
  bool log = false;                   // even in the logarithm; real numbers then have no step
  std::vector<config::Node> choices;  // of a choice: booleans, numbers, strings (a list or table is there as its text)

  /// With a step the upper bound is the last value that steps from `low` reach, counted in decimals: quniform(0.1, 0.35, 0.1) ends at 0.3.
  static Distribution real(double low, double high, double step = 0, bool log = false);
  static Distribution integer(std::int64_t low, std::int64_t high, std::int64_t step = 1, bool log = false);
  static Distribution choice(std::vector<config::Node> choices);

  bool numeric() const { return kind != Kind::choice; }
  /// How many values there are; nothing for every real number between two bounds.
  std::optional<std::int64_t> count() const;
  /// The value number `index` of a countable distribution, from 0: low + index step within the bounds, the double that Optuna gives.
  double at(std::int64_t index) const;
  /// Only one value is possible.
  bool single() const;
  bool contains(double value) const;
  /// The nearest allowed value.
  double nearest(double value) const;
  /// A stored double as the setting it stands for: a real, an integer, or the choice.
  config::Node value(double stored) const;

  /// `{"name": "FloatDistribution", "attributes": {...}}`, as optuna.distributions.distribution_to_json writes it.
  std::string to_json() const;
  /// Reads it back, Optuna's older names too. Throws Code::data.
  static Distribution from_json(std::string_view text);
  /// "loguniform(0.0001, 0.03)", "choice(adamw, lion)".
  std::string describe() const;

  friend bool operator==(const Distribution& a, const Distribution& b) = default;
};

/// A parameter that a trial has drawn.
struct Parameter {
  std::string name;
  Distribution distribution;
  double stored = 0;

  config::Node value() const { return distribution.value(stored); }
};

}  // namespace kf::sweep
