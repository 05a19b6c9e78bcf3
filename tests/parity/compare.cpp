#include "parity/compare.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <cmath>
#include <cstdio>

#include "core/text.h"

namespace kf::parity {
namespace {

std::string brief(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.3g", value);
  return buffer;
}

std::string shape_text(const at::Tensor& tensor) {
  std::vector<std::string> sizes;
  for (const std::int64_t size : tensor.sizes()) {
    sizes.push_back(to_text(size));
  }
  return "(" + join(sizes, ",") + ")";
}

/// "[1,3,5]" of the flat index `at`.
std::string place(const at::Tensor& tensor, std::int64_t at) {
  std::vector<std::string> indices(static_cast<std::size_t>(tensor.dim()));
  for (std::int64_t d = tensor.dim() - 1; d >= 0; --d) {
    indices[static_cast<std::size_t>(d)] = to_text(at % tensor.size(d));
    at /= tensor.size(d);
  }
  return indices.empty() ? "" : "[" + join(indices, ",") + "]";
}

template <class T>
std::string list_text(const std::vector<T>& values) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < values.size() && i < 12; ++i) {
    out.push_back(to_text(values[i]));
  }
  if (values.size() > 12) {
    out.emplace_back("...");
  }
  return "[" + join(out, ", ") + "]";
}

}  // namespace

bool Comparison::begin(const std::string& what) {
  if (case_.left_out(what)) {
    return false;
  }
  ++done_;
  return true;
}

void Comparison::wrong(const std::string& problem) {
  if (problems_.size() < 6) {
    problems_.push_back(problem);
  }
}

void Comparison::one(const std::string& what, double actual, double expected, double allowed) {
  const bool equal = actual == expected || (std::isnan(actual) && std::isnan(expected));
  const double error = equal ? 0 : std::abs(actual - expected);  // NaN against a number, or infinity, stays out of bounds
  const bool inside = equal || error <= allowed;
  const double share = equal ? 0 : allowed > 0 && !std::isnan(error) ? error / allowed : HUGE_VAL;
  differing_ += inside ? 0 : 1;
  if (share > worst_share_) {
    worst_share_ = share;
    worst_error_ = error;
    worst_allowed_ = allowed;
    worst_actual_ = actual;
    worst_expected_ = expected;
    worst_at_ = what;
  }
}

void Comparison::number(const std::string& what, double actual, double expected, const Tolerance& tolerance) {
  if (begin(what)) {
    const std::int64_t before = differing_;
    one(what, actual, expected, tolerance.allowed(expected));
    if (differing_ != before) {
      wrong(format("{} is {}, expected {}", what, actual, expected));
    }
  }
}

void Comparison::numbers(const std::string& what, const std::vector<double>& actual, const std::vector<double>& expected,
                         const Tolerance& tolerance) {
  if (!begin(what)) {
    return;
  }
  if (actual.size() != expected.size()) {
    wrong(format("{} has {} values, expected {}", what, actual.size(), expected.size()));
    return;
  }
  const std::int64_t before = differing_;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    one(format("{}[{}]", what, i), actual[i], expected[i], tolerance.allowed(expected[i]));
  }
  if (differing_ != before) {
    wrong(format("{} of {} values of {} differ", differing_ - before, actual.size(), what));
  }
}

void Comparison::tensor(const std::string& what, const at::Tensor& actual, const at::Tensor& expected, const Tolerance& tolerance) {
  if (!begin(what)) {
    return;
  }
  if (!actual.defined()) {
    wrong(what + " does not exist");
    return;
  }
  if (actual.sizes() != expected.sizes()) {
    wrong(format("{} has shape {}, expected {}", what, shape_text(actual), shape_text(expected)));
    return;
  }
  const at::Tensor ours = actual.detach().to(at::kCPU, at::kDouble).contiguous();
  const at::Tensor theirs = expected.detach().to(at::kCPU, at::kDouble).contiguous();
  const double* a = ours.const_data_ptr<double>();
  const double* b = theirs.const_data_ptr<double>();
  const std::int64_t before = differing_;
  const double worst = worst_share_;
  std::int64_t where = 0;
  for (std::int64_t i = 0; i < ours.numel(); ++i) {
    const double share = worst_share_;
    one(what, a[i], b[i], tolerance.allowed(b[i]));
    where = worst_share_ > share ? i : where;
  }
  if (worst_share_ > worst) {
    worst_at_ = what + place(ours, where);
  }
  if (differing_ != before) {
    wrong(format("{} of {} values of {} differ", differing_ - before, ours.numel(), what));
  }
}

void Comparison::integer(const std::string& what, std::int64_t actual, std::int64_t expected) {
  if (begin(what) && actual != expected) {
    wrong(format("{} is {}, expected {}", what, actual, expected));
  }
}

void Comparison::integers(const std::string& what, const std::vector<std::int64_t>& actual, const std::vector<std::int64_t>& expected) {
  if (begin(what) && actual != expected) {
    wrong(format("{} is {}, expected {}", what, list_text(actual), list_text(expected)));
  }
}

void Comparison::same_text(const std::string& what, const std::string& actual, const std::string& expected) {
  if (begin(what) && actual != expected) {
    wrong(format("{} is {}, expected {}", what, actual, expected));
  }
}

void Comparison::require(const std::string& what, bool holds, const std::string& problem) {
  if (begin(what) && !holds) {
    wrong(problem);
  }
}

std::string Comparison::summary() const {
  if (done_ == 0) {
    return "nothing was compared: the runner does not know the fields of this case";
  }
  std::string out = "exact";
  if (worst_share_ >= 0) {
    out = format("worst {} at {}", brief(worst_error_), worst_at_);
    out += worst_share_ > 1 ? format(": {} instead of {}, allowed {}", worst_actual_, worst_expected_, brief(worst_allowed_))
                            : format(" (allowed {})", brief(worst_allowed_));
  }
  return problems_.empty() ? out : join(problems_, "; ") + "; " + out;
}

}  // namespace kf::parity
