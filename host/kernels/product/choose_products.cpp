#include "kernels/product/choose_products.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <set>
#include <utility>

#include "core/text.h"
#include "kernels/product/products_scope.h"
#include "kernels/simd/isa.h"

namespace kf {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kClearlyWorthIt = 1.15;  // of small ones, whose times of microseconds scatter: two starts shall choose alike
constexpr double kWorthIt = 1.05;         // what alternated best times of equal kernels may differ by
constexpr double kBudget = 0.012;         // seconds
constexpr double kSmallBudget = 0.001;    // these take microseconds

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

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
  constexpr int kRuns = 9;  // the best of them is undisturbed also beside neighbours
  const auto start = Clock::now();
  double sum_one = 0, sum_other = 0;
  for (const Trial& trial : trials) {
    double best_one = 1e9, best_other = 1e9;
    seconds_of(trial, one);  // a kernel's first call prepares it
    seconds_of(trial, other);
    for (int run = 0; run < kRuns; ++run) {
      best_one = std::min(best_one, seconds_of(trial, one));
      best_other = std::min(best_other, seconds_of(trial, other));
      const bool slow = best_one > budget || best_other > budget;  // a type without instructions
      if ((run > 0 && slow) || (run > 1 && seconds_since(start) > budget)) {
        break;
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

Trial trial_of(std::int64_t rows, std::int64_t out, std::int64_t in, at::ScalarType type) {
  const at::TensorOptions options = at::TensorOptions().dtype(type);
  return {at::full({rows, in}, 0.5, options), at::full({out, in}, 0.5, options), at::full({rows, out}, 0.5, options)};
}

std::vector<Trial> large_trials(const std::vector<WeightShape>& shapes, std::int64_t rows, at::ScalarType type) {
  constexpr std::int64_t kSide = 1024, kRows = 256;
  std::set<std::pair<std::int64_t, std::int64_t>> seen;
  std::vector<Trial> out;
  const std::int64_t m = std::min(rows, kRows);
  for (const WeightShape& shape : shapes) {
    const std::pair<std::int64_t, std::int64_t> cut{std::min(shape.out, kSide), std::min(shape.in, kSide)};
    if (m * cut.first * cut.second >= kSmallestChosenProduct && seen.insert(cut).second) {
      out.push_back(trial_of(m, cut.first, cut.second, type));
    }
  }
  return out;
}

/// Of the shapes with which products of this many rows are small.
std::vector<Trial> small_trials(const std::vector<WeightShape>& shapes, std::int64_t rows, at::ScalarType type) {
  std::set<std::pair<std::int64_t, std::int64_t>> seen;
  std::vector<Trial> out;
  for (const WeightShape& shape : shapes) {
    if (rows * shape.out * shape.in < kSmallestChosenProduct && seen.insert({shape.out, shape.in}).second) {
      out.push_back(trial_of(rows, shape.out, shape.in, type));
    }
  }
  return out;
}

/// "fp32 by oneDNN (1.80 x at::mm)".
std::string faster_of(const std::string& what, const std::string& one, double seconds_one, const std::string& other, double seconds_other,
                      bool takes_one) {
  return takes_one ? format("{} by {} ({} x {})", what, one, fixed(seconds_other / seconds_one, 2), other)
                   : format("{} by {} ({} x {})", what, other, fixed(seconds_one / seconds_other, 2), one);
}

/// Takes the kernels for fp32 products, and gives the reasons.
std::string choose_fp32(Products& products, const std::vector<Trial>& large, const std::vector<Trial>& small) {
  std::string reason;
  if (!large.empty()) {
    const auto [mm, onednn] = compare(large, {}, {.fp32_onednn = true}, kBudget);
    products.fp32_onednn = mm > kWorthIt * onednn;
    reason = faster_of("fp32", "oneDNN", onednn, "at::mm", mm, products.fp32_onednn);
    // Where oneDNN's are faster, ours are faster still for these (by 1.1 to 1.4 times with AVX2 and AVX-512): too little for a measurement
    // of milliseconds, which would choose otherwise at another start.
    products.fp32_own_tn = products.fp32_onednn && simd::isa() != simd::Isa::plain;
    Products own = products;
    own.fp32_own = true;
    const auto [library, ours] = compare(large, products, own, kBudget);
    products.fp32_own = library > kClearlyWorthIt * ours;  // they are near each other, and two starts shall choose alike
    const char* const name = products.fp32_onednn ? "oneDNN" : "at::mm";
    reason += ", " + faster_of("of them up to 2^28 multiplications", "own kernels", ours, name, library, products.fp32_own);
  }
  if (!small.empty()) {
    const auto [mm, ours] = compare(small, {}, {.fp32_small = true}, kSmallBudget);
    products.fp32_small = mm > kClearlyWorthIt * ours;
    reason += (reason.empty() ? "" : ", ") + faster_of("small", "own kernels", ours, "at::mm", mm, products.fp32_small);
  }
  return reason;
}

/// Whether bf16 products may have instructions of their own. Without them LibTorch's are tens of times slower than fp32 ones: nothing to
/// measure, and nothing that a busy machine could turn round.
bool may_have_bf16_instructions() {
#if defined(__x86_64__)
  return simd::isa() == simd::Isa::avx512_bf16;  // what has AMX has these, too
#else
  return true;
#endif
}

/// Through fp32, of which the faster kernels are chosen.
void choose_bf16_through_fp32(ProductChoice& choice, const std::vector<Trial>& wide, const std::vector<Trial>& small) {
  if (!wide.empty()) {
    choose_fp32(choice.products, wide, {});
    choice.products.bf16_widened = true;
    choice.reason = format("bf16 through fp32 of {}", choice.products.fp32_onednn ? "oneDNN" : "at::mm");
  }
  if (!small.empty()) {
    choice.products.fp32_small = choice.products.bf16_small = true;
    choice.reason += std::string(choice.reason.empty() ? "" : ", ") + "small through own fp32 kernels";
  }
  choice.reason += choice.reason.empty() ? "" : ": this processor has no products in bf16";
}

/// The same for bf16; `wide` are the large ones in fp32, `large` and `small` in bf16.
void choose_bf16(ProductChoice& choice, const std::vector<Trial>& wide, const std::vector<Trial>& large, const std::vector<Trial>& small) {
  Products through;
  if (!wide.empty()) {
    choose_fp32(through, wide, {});
    Products widened = through;
    widened.bf16_widened = true;
    const auto [native, other] = compare(large, {}, widened, kBudget);
    const bool takes = native > kWorthIt * other;
    choice.products = takes ? widened : Products();
    choice.reason = faster_of("bf16", through.fp32_onednn ? "fp32 of oneDNN" : "fp32 of at::mm", other, "its own", native, takes);
  }
  if (!small.empty()) {
    Products ours = choice.products;
    ours.fp32_small = ours.bf16_small = true;
    const auto [native, other] = compare(small, choice.products, ours, kSmallBudget);
    const bool takes = native > kClearlyWorthIt * other;
    choice.products = takes ? ours : choice.products;
    choice.reason += (choice.reason.empty() ? "" : ", ") + faster_of("small", "own fp32 kernels", other, "at::mm", native, takes);
  }
}

}  // namespace

ProductChoice choose_products(const std::vector<WeightShape>& shapes, std::int64_t rows, at::ScalarType compute) {
  const ProductsScope before(products());  // what is tried sets others
  const at::NoGradGuard no_grad;
  ProductChoice choice;
  if (compute != at::kFloat && compute != at::kBFloat16) {
    return choice;
  }
  const std::vector<Trial> wide = large_trials(shapes, rows, at::kFloat);
  if (compute == at::kFloat) {
    choice.reason = choose_fp32(choice.products, wide, small_trials(shapes, rows, at::kFloat));
    return choice;
  }
  const std::vector<Trial> small = small_trials(shapes, rows, at::kBFloat16);
  if (may_have_bf16_instructions()) {
    choose_bf16(choice, wide, large_trials(shapes, rows, at::kBFloat16), small);
  } else {
    choose_bf16_through_fp32(choice, wide, small);
  }
  return choice;
}

}  // namespace kf
