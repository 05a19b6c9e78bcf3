#include "kernels/muon/rows.h"
#include "kernels/simd/vector.h"

namespace kf::simd::KF_SIMD_ISA {
namespace {

template <class Gradient>
void push(const MomentumRow& row, std::int64_t first, std::int64_t end) {
  const Gradient* const gradient = static_cast<const Gradient*>(row.gradient) + first;
  float* const momentum = row.momentum + first;
  float* const ahead = row.ahead != nullptr ? row.ahead + first : nullptr;
  const V factor = splat(row.factor), beta = splat(row.beta);
  each_run(end - first, [&](std::int64_t j, auto lanes) {
    const V g = lanes.load(gradient + j) * factor;
    const V m = fma(lanes.load(momentum + j), beta, g);
    lanes.store(momentum + j, m);
    if (ahead != nullptr) {
      lanes.store(ahead + j, fma(m, beta, g));
    }
  });
}

template <class Weight>
void move(const MoveRow& row, std::int64_t first, std::int64_t end) {
  Weight* const weight = static_cast<Weight*>(row.weight) + first;
  const float* const direction = row.direction + first;
  Bf16* const value = row.value != nullptr ? static_cast<Bf16*>(row.value) + first : nullptr;
  const V keep = splat(row.keep), rate = splat(row.rate);
  each_run(end - first, [&](std::int64_t j, auto lanes) {
    const V w = lanes.load(weight + j) * keep - lanes.load(direction + j) * rate;
    lanes.store(weight + j, w);
    if (value != nullptr) {
      lanes.store(value + j, w);
    }
  });
}

}  // namespace

void muon_momentum(const MomentumRow& row, std::int64_t first, std::int64_t end) {
  row.gradient_bf16 ? push<Bf16>(row, first, end) : push<float>(row, first, end);
}

void muon_move(const MoveRow& row, std::int64_t first, std::int64_t end) {
  row.weight_bf16 ? move<Bf16>(row, first, end) : move<float>(row, first, end);
}

}  // namespace kf::simd::KF_SIMD_ISA
