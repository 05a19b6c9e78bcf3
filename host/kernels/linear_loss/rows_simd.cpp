// Cross entropy of rows of logits. All arithmetic is fp32, in registers; a row of a usual vocabulary stays in the core's own cache between
// the reads for its maximum, its sum and its slopes.

#include "kernels/linear_loss/rows.h"
#include "kernels/simd/vector.h"

namespace kf::simd::KF_SIMD_ISA {
namespace {

constexpr float kInfinity = __builtin_inff();

struct Shape {
  V scale, per_cap, cap;
  bool caps;
};

Shape shape_of(const LossRows& rows) {
  const bool caps = rows.softcap > 0;
  return {splat(rows.scale), splat(caps ? 1 / rows.softcap : 0), splat(rows.softcap), caps};
}

/// tanh(logit / cap).
KF_SIMD_INLINE V bent(const Shape& s, V product) { return tanh(product * s.scale * s.per_cap); }
KF_SIMD_INLINE V logit(const Shape& s, V product) { return s.caps ? bent(s, product) * s.cap : product * s.scale; }

/// f(logits) of a row from left to right, `rest` in the lanes behind its end.
template <class T, class Function>
KF_SIMD_INLINE void each_logit(const Shape& s, const T* row, std::int64_t n, float rest, Function f) {
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    f(logit(s, load(row + i)));
  }
  if (i < n) {
    f(first_of(logit(s, load_first(row + i, n - i)), splat(rest), n - i));
  }
}

/// Without the cap, which keeps the order.
template <class T>
float largest_logit(const Shape& s, const T* row, std::int64_t n) {
  const Shape uncapped{s.scale, s.per_cap, s.cap, false};
  V top = splat(-kInfinity);
  each_logit(uncapped, row, n, -kInfinity, [&top](V x) { top = max(top, x); });
  const float all = largest(top);
  if (!s.caps) {
    return all;
  }
  float first[kLanes];
  store(first, tanh(splat(all) * s.per_cap) * s.cap);
  return first[0];
}

template <class T>
float scalar_logit(const Shape& s, const T* row, std::int64_t i) {
  float all[kLanes];
  store(all, logit(s, load_first(row + i, 1)));
  return all[0];
}

template <class T>
void losses_of(const LossRows& rows, std::int64_t first, std::int64_t end, float* lse, float* losses) {
  const Shape s = shape_of(rows);
  for (std::int64_t i = first; i < end; ++i) {
    const T* const row = static_cast<const T*>(rows.products) + i * rows.vocabulary;
    const float top = largest_logit(s, row, rows.vocabulary);
    const V tops = splat(top);
    V sums = {};
    each_logit(s, row, rows.vocabulary, -kInfinity, [&sums, tops](V x) { sums += exp(x - tops); });
    lse[i] = top + __builtin_logf(sum(sums));
    losses[i] = rows.labels[i] < 0 ? 0 : lse[i] - scalar_logit(s, row, rows.labels[i]);
  }
}

/// d softmax / d product of some lanes, `weight` times it.
KF_SIMD_INLINE V slope(const Shape& s, V product, V lse, V weight) {
  if (!s.caps) {
    return exp(product * s.scale - lse) * weight;
  }
  const V b = bent(s, product);
  return exp(b * s.cap - lse) * weight * (splat(1.0F) - b * b);
}

template <class T>
void slopes_of(const LossRows& rows, std::int64_t first, std::int64_t end, const float* lse, float ce, float z, void* slopes) {
  const Shape s = shape_of(rows);
  const std::int64_t n = rows.vocabulary;
  for (std::int64_t i = first; i < end; ++i) {
    const T* const row = static_cast<const T*>(rows.products) + i * n;
    T* const out = static_cast<T*>(slopes) + i * n;
    const std::int64_t label = rows.labels[i];
    const float own = label < 0 ? 0 : ce;
    const V weight = splat(rows.scale * (own + 2 * z * lse[i])), all = splat(lse[i]);
    const std::int64_t from = label < 0 ? 0 : label;  // these lanes are read before they may be written
    const V product = load_first(row + from, 1);
    std::int64_t k = 0;
    for (; k + kLanes <= n; k += kLanes) {
      store(out + k, slope(s, load(row + k), all, weight));
    }
    if (k < n) {
      store_first(out + k, slope(s, load_first(row + k, n - k), all, weight), n - k);
    }
    if (label >= 0) {
      const V b = s.caps ? bent(s, product) : V{};
      const V hit = splat(rows.scale * own) * (splat(1.0F) - b * b);
      store_first(out + label, slope(s, product, all, weight) - hit, 1);
    }
  }
}

}  // namespace

void loss_rows(const LossRows& rows, std::int64_t first, std::int64_t end, float* lse, float* losses) {
  rows.low ? losses_of<Bf16>(rows, first, end, lse, losses) : losses_of<float>(rows, first, end, lse, losses);
}

void loss_slopes(const LossRows& rows, std::int64_t first, std::int64_t end, const float* lse, float ce, float z, void* slopes) {
  rows.low ? slopes_of<Bf16>(rows, first, end, lse, ce, z, slopes) : slopes_of<float>(rows, first, end, lse, ce, z, slopes);
}

}  // namespace kf::simd::KF_SIMD_ISA
