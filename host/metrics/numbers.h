#pragma once
// Small formulas that the rows and the evaluation share.

#include <algorithm>
#include <cmath>

namespace kf {

/// exp(cross entropy), of at most 20 so that a young model gives a number that fits a column (golden/metrics).
inline double perplexity(double cross_entropy) { return std::exp(std::min(cross_entropy, 20.0)); }

/// Exponential moving average; the first value starts it.
class Smoothed {
 public:
  explicit Smoothed(double weight = 0.1) : weight_(weight) {}
  double add(double value) {
    value_ = started_ ? weight_ * value + (1 - weight_) * value_ : value;
    started_ = true;
    return value_;
  }
  double value() const { return value_; }

 private:
  double weight_;
  double value_ = 0;
  bool started_ = false;
};

}  // namespace kf
