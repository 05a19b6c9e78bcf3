#include "kernels/lion/rows.h"
#include "kernels/simd/vector.h"

namespace kf::simd::KF_SIMD_ISA {
namespace {

/// Numbers first .. end.
template <class Weight, class Gradient>
void move(const LionRow& row, const LionRates& rates, std::int64_t first, std::int64_t end) {
  Weight* const weight = static_cast<Weight*>(row.weight) + first;
  const Gradient* const gradient = static_cast<const Gradient*>(row.gradient) + first;
  float* const m = row.m + first;
  Bf16* const value = row.value != nullptr ? static_cast<Bf16*>(row.value) + first : nullptr;
  const V factor = splat(rates.factor), beta1 = splat(rates.beta1), new1 = splat(rates.new1), beta2 = splat(rates.beta2),
          new2 = splat(rates.new2), keep = splat(rates.keep), lr = splat(rates.lr);
  each_run(end - first, [&](std::int64_t j, auto lanes) {
    const V g = lanes.load(gradient + j) * factor;
    const V mean = lanes.load(m + j);
    const V ahead = fma(g, new1, mean * beta1);
    const V up = ahead > V{} ? lr : V{};
    const V step = ahead < V{} ? -lr : up;
    const V moved = lanes.load(weight + j) * keep - step;
    lanes.store(weight + j, moved);
    lanes.store(m + j, fma(g, new2, mean * beta2));
    if (value != nullptr) {
      lanes.store(value + j, moved);
    }
  });
}

template <class Weight>
void move_by(const LionRow& row, const LionRates& rates, std::int64_t first, std::int64_t end) {
  row.gradient_bf16 ? move<Weight, Bf16>(row, rates, first, end) : move<Weight, float>(row, rates, first, end);
}

}  // namespace

void lion_blocks(const LionRow& row, const LionRates& rates, std::int64_t first, std::int64_t end) {
  const std::int64_t from = first * kLionBlock, all = end * kLionBlock, to = all < row.numbers ? all : row.numbers;
  row.weight_bf16 ? move_by<Bf16>(row, rates, from, to) : move_by<float>(row, rates, from, to);
}

}  // namespace kf::simd::KF_SIMD_ISA
