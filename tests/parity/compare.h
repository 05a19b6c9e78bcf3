#pragma once
// Collects the comparisons of one case: whether all hold, and the worst of them.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "parity/case.h"

namespace kf::parity {

class Comparison {
 public:
  explicit Comparison(const Case& of) : case_(of) {}

  void number(const std::string& what, double actual, double expected, const Tolerance& tolerance);
  void numbers(const std::string& what, const std::vector<double>& actual, const std::vector<double>& expected, const Tolerance& tolerance);
  /// Shapes must be equal; values are compared in double.
  void tensor(const std::string& what, const at::Tensor& actual, const at::Tensor& expected, const Tolerance& tolerance);
  void integer(const std::string& what, std::int64_t actual, std::int64_t expected);
  void integers(const std::string& what, const std::vector<std::int64_t>& actual, const std::vector<std::int64_t>& expected);
  void same_text(const std::string& what, const std::string& actual, const std::string& expected);
  /// A condition that has no two sides; `problem` is the message when it does not hold.
  void require(const std::string& what, bool holds, const std::string& problem);

  bool ok() const { return problems_.empty() && done_ > 0; }
  /// "worst 4.8e-07 at logits[1,3,5] (4% of 1.2e-05)", or what is wrong. One line.
  std::string summary() const;

 private:
  bool begin(const std::string& what);
  void wrong(const std::string& problem);
  void one(const std::string& what, double actual, double expected, double allowed);

  const Case& case_;
  std::int64_t done_ = 0;       // comparisons made
  std::int64_t differing_ = 0;  // numbers past their tolerance
  std::vector<std::string> problems_;

  // The worst number by share of its tolerance.
  double worst_share_ = -1;
  double worst_error_ = 0, worst_allowed_ = 0, worst_actual_ = 0, worst_expected_ = 0;
  std::string worst_at_;
};

}  // namespace kf::parity
