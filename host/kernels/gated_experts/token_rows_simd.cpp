#include "kernels/gated_experts/token_rows.h"
#include "kernels/simd/vector.h"

namespace kf::simd::KF_SIMD_ISA {
namespace {

template <class T>
void sum_rows(const RowSums& of, std::int64_t first, std::int64_t end) {
  for (std::int64_t token = first; token < end; ++token) {
    const void* const* const rows = of.rows + token * of.each;
    const float* const weights = of.weights != nullptr ? of.weights + token * of.each : nullptr;
    T* const out = static_cast<T*>(of.out) + token * of.width;
    each_run(of.width, [&](std::int64_t j, auto lanes) {
      V total = {};
      for (std::int64_t i = 0; i < of.each; ++i) {
        total = fma(lanes.load(static_cast<const T*>(rows[i]) + j), splat(weights != nullptr ? weights[i] : 1.0F), total);
      }
      lanes.store(out + j, total);
    });
  }
}

template <class T>
void weigh(const WeighedRows& of, std::int64_t first, std::int64_t end) {
  for (std::int64_t r = first; r < end; ++r) {
    T* const a = static_cast<T*>(of.a) + r * of.width;
    T* const b = static_cast<T*>(of.b) + r * of.width;
    const V weight = splat(of.weights[r]);
    V total = {}, other = {};
    each_run(of.width, [&](std::int64_t j, auto lanes) {
      const V x = lanes.load(a + j), y = lanes.load(b + j);
      const V next = fma(x, y, total);  // two sums in turns
      total = other;
      other = next;
      lanes.store(a + j, x * weight);
      lanes.store(b + j, y * weight);
    });
    of.products[r] = sum(total + other);
  }
}

}  // namespace

void sum_token_rows(const RowSums& of, std::int64_t first, std::int64_t end) {
  of.bf16 ? sum_rows<Bf16>(of, first, end) : sum_rows<float>(of, first, end);
}

void weigh_rows(const WeighedRows& of, std::int64_t first, std::int64_t end) {
  of.bf16 ? weigh<Bf16>(of, first, end) : weigh<float>(of, first, end);
}

}  // namespace kf::simd::KF_SIMD_ISA
