#pragma once
// Dynamic loss scaling for fp16 (Micikevicius et al. 2018, section 3.2): small gradients would round to 0.

#include <cstdint>

namespace kf {

/// Halves when gradients overflow, doubles after 2000 updates in a row without that.
class LossScale {
 public:
  explicit LossScale(double first) : value_(first) {}

  double value() const { return value_; }
  std::int64_t good_updates() const { return good_; }
  void good();
  void overflow();
  void set(double value, std::int64_t good);
  /// Below this, halving helps nobody: the gradients themselves are not finite.
  bool exhausted() const { return value_ < 1.0 / 65536; }

  static constexpr std::int64_t kGrowthInterval = 2000;

 private:
  double value_;
  std::int64_t good_ = 0;  // since the last change
};

}  // namespace kf
