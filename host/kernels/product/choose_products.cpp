#include "kernels/product/choose_products.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <set>
#include <utility>

#include "core/text.h"

namespace kf {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Sets the products back at its end.
class ProductsGuard {
 public:
  ProductsGuard() : before_(products()) {}
  ~ProductsGuard() { set_products(before_); }
  ProductsGuard(const ProductsGuard&) = delete;
  ProductsGuard& operator=(const ProductsGuard&) = delete;

 private:
  Products before_;
};

struct Trial {
  at::Tensor x, weight, gradient;  // (rows, in), (out, in), (rows, out)
};

double seconds_of(const Trial& trial, const Products& kernels) {
  set_products(kernels);
  const auto start = Clock::now();
  product_nt(trial.x, trial.weight);
  product_nn(trial.gradient, trial.weight);
  product_tn(trial.gradient, trial.x);
  return seconds_since(start);
}

/// The best of a few alternated runs each, summed over the trials, until the time is used up. Alternated, because a busy neighbour then
/// disturbs both.
std::pair<double, double> compare(const std::vector<Trial>& trials, const Products& one, const Products& other, double budget) {
  constexpr int kRuns = 3;
  const auto start = Clock::now();
  double sum_one = 0, sum_other = 0;
  for (const Trial& trial : trials) {
    double best_one = 1e9, best_other = 1e9;
    seconds_of(trial, other);  // a kernel's first call prepares it
    for (int run = 0; run < kRuns; ++run) {
      best_one = std::min(best_one, seconds_of(trial, one));
      best_other = std::min(best_other, seconds_of(trial, other));
      if (best_one > budget || best_other > budget) {
        break;  // a type without instructions: one look is enough
      }
    }
    sum_one += best_one;
    sum_other += best_other;
    if (seconds_since(start) > budget) {
      break;
    }
  }
  return {sum_one, sum_other};
}

std::vector<Trial> trials_of(const std::vector<WeightShape>& shapes, std::int64_t rows, at::ScalarType type) {
  constexpr std::int64_t kSide = 1024, kRows = 256;
  std::set<std::pair<std::int64_t, std::int64_t>> seen;
  std::vector<Trial> out;
  const std::int64_t m = std::min(rows, kRows);
  for (const WeightShape& shape : shapes) {
    const std::pair<std::int64_t, std::int64_t> cut{std::min(shape.out, kSide), std::min(shape.in, kSide)};
    if (m * cut.first * cut.second >= kSmallestChosenProduct && seen.insert(cut).second) {
      const at::TensorOptions options = at::TensorOptions().dtype(type);
      out.push_back({at::full({m, cut.second}, 0.5, options), at::full({cut.first, cut.second}, 0.5, options),
                     at::full({m, cut.first}, 0.5, options)});
    }
  }
  return out;
}

}  // namespace

ProductChoice choose_products(const std::vector<WeightShape>& shapes, std::int64_t rows, at::ScalarType compute) {
  constexpr double kWorthIt = 1.05;  // what alternated best times of equal kernels may differ by
  constexpr double kBudget = 0.012;  // seconds
  const ProductsGuard guard;
  const at::NoGradGuard no_grad;
  ProductChoice choice;
  if (compute != at::kFloat && compute != at::kBFloat16) {
    return choice;
  }
  const std::vector<Trial> wide = trials_of(shapes, rows, at::kFloat);
  if (wide.empty()) {
    return choice;
  }
  const auto [mm, onednn] = compare(wide, {}, {true, false}, kBudget);
  choice.products.fp32_onednn = mm > kWorthIt * onednn;
  if (compute == at::kFloat) {
    choice.reason = choice.products.fp32_onednn ? format("fp32 through oneDNN ({} times as fast as at::mm)", fixed(mm / onednn, 2))
                                                : format("fp32 through at::mm ({} times as fast as oneDNN)", fixed(onednn / mm, 2));
    return choice;
  }
  const Products widened{choice.products.fp32_onednn, true};
  const auto [native, through] = compare(trials_of(shapes, rows, at::kBFloat16), {}, widened, kBudget);
  if (native > kWorthIt * through) {
    choice.products = widened;
    choice.reason = format("bf16 through fp32 {} ({} times as fast as bf16's own)", widened.fp32_onednn ? "of oneDNN" : "of at::mm",
                           fixed(native / through, 2));
  } else {
    choice.products = {};
    choice.reason = format("bf16's own ({} times as fast as through fp32)", fixed(through / native, 2));
  }
  return choice;
}

}  // namespace kf
