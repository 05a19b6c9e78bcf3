#include "kernels/rms_norm/rms_norm_rows.h"
#include "kernels/simd/vector.h"

namespace kf::simd::KF_SIMD_ISA {
namespace {

/// mean(h^2), by four sums: one would wait for its own last addition.
template <class T>
KF_SIMD_INLINE float mean_square(const T* h, std::int64_t width) {
  V sums[4] = {};
  std::int64_t j = 0;
  for (; j + 4 * kLanes <= width; j += 4 * kLanes) {
    for (int i = 0; i < 4; ++i) {
      const V x = load(h + j + i * kLanes);
      sums[i] = fma(x, x, sums[i]);
    }
  }
  each_run(width - j, [&](std::int64_t k, auto lanes) {
    const V x = lanes.load(h + j + k);
    sums[0] = fma(x, x, sums[0]);
  });
  return sum((sums[0] + sums[1]) + (sums[2] + sums[3])) / static_cast<float>(width);
}

template <class T>
void forward(const NormForward& of, std::int64_t first, std::int64_t end) {
  for (std::int64_t r = first; r < end; ++r) {
    const T* h = row_of<T>(of.x, r);
    if (of.branch.data != nullptr) {
      const T* const x = h;
      const T* const branch = row_of<T>(of.branch, r);
      T* const sum = row_of<T>(of.h, r);
      each_run(of.width, [&](std::int64_t j, auto lanes) { lanes.store(sum + j, lanes.load(x + j) + lanes.load(branch + j)); });
      h = sum;  // as it is kept, rounded
    }
    const float inverse = 1.0F / __builtin_sqrtf(mean_square(h, of.width) + of.eps);
    of.inverse[r] = inverse;
    const V scale = splat(inverse);
    T* const y = row_of<T>(of.y, r);
    if (of.factor != nullptr) {
      each_run(of.width, [&](std::int64_t j, auto lanes) { lanes.store(y + j, lanes.load(h + j) * scale * lanes.load(of.factor + j)); });
    } else {
      each_run(of.width, [&](std::int64_t j, auto lanes) { lanes.store(y + j, lanes.load(h + j) * scale); });
    }
  }
}

/// g factor.
struct Weighed {
  const float* factor;
  template <class Lanes>
  V operator()(V g, std::int64_t j, Lanes lanes) const {
    return factor != nullptr ? g * lanes.load(factor + j) : g;
  }
};

/// mean(g factor n); and g n goes into `sums`, if there are some.
template <class T>
KF_SIMD_INLINE float mean_product(const T* h, const T* gradient, const Weighed& weighed, float inverse, float* sums, std::int64_t width) {
  const V scale = splat(inverse);
  V total = {}, other = {};
  each_run(width, [&](std::int64_t j, auto lanes) {
    const V n = lanes.load(h + j) * scale;
    const V g = lanes.load(gradient + j);
    if (sums != nullptr) {
      lanes.store(sums + j, fma(g, n, lanes.load(sums + j)));
    }
    other = fma(weighed(g, j, lanes), n, other);
    const V swap = total;  // two sums in turns
    total = other;
    other = swap;
  });
  return sum(total + other) / static_cast<float>(width);
}

/// What T makes of it.
KF_SIMD_INLINE V as(V v, const float*) { return rounded(v); }
KF_SIMD_INLINE V as(V v, const Bf16*) { return widen(narrow(v)); }

template <class T>
KF_SIMD_INLINE void backward_row(const NormBackward& of, std::int64_t r, float* sums) {
  const T* const h = row_of<T>(of.h, r);
  const T* const gradient = row_of<T>(of.gradient, r);
  const Weighed weighed{of.factor};
  const V mean = splat(mean_product(h, gradient, weighed, of.inverse[r], sums, of.width));
  if (of.dx.data == nullptr) {
    return;
  }
  const V scale = splat(of.inverse[r]);
  T* const dx = row_of<T>(of.dx, r);
  const auto through_norm = [&](std::int64_t j, auto lanes) {
    const V g = rounded(weighed(lanes.load(gradient + j), j, lanes));  // so that no other product is fused in one of the loops below
    return (g - lanes.load(h + j) * scale * mean) * scale;
  };
  if (of.beside.data == nullptr) {
    each_run(of.width, [&](std::int64_t j, auto lanes) { lanes.store(dx + j, through_norm(j, lanes)); });
    return;
  }
  const T* const beside = row_of<T>(of.beside, r);
  // Rounded before it is added, as where the norm is a node of its own: a block that makes its norm again has the same bits.
  each_run(of.width, [&](std::int64_t j, auto lanes) { lanes.store(dx + j, lanes.load(beside + j) + as(through_norm(j, lanes), dx)); });
}

template <class T>
void backward(const NormBackward& of, std::int64_t first, std::int64_t end) {
  for (std::int64_t block = first; block < end; ++block) {
    float* const sums = of.dfactor != nullptr ? of.dfactor + block * of.width : nullptr;
    if (sums != nullptr) {
      std::memset(sums, 0, static_cast<std::size_t>(of.width) * sizeof(float));
    }
    const std::int64_t last = (block + 1) * kNormBlock < of.rows ? (block + 1) * kNormBlock : of.rows;
    for (std::int64_t r = block * kNormBlock; r < last; ++r) {
      backward_row<T>(of, r, sums);
    }
  }
}

}  // namespace

void norm_forward(const NormForward& of, std::int64_t first, std::int64_t end) {
  of.bf16 ? forward<Bf16>(of, first, end) : forward<float>(of, first, end);
}

void norm_backward(const NormBackward& of, std::int64_t first, std::int64_t end) {
  of.bf16 ? backward<Bf16>(of, first, end) : backward<float>(of, first, end);
}

void add_sums(const float* sums, std::int64_t count, std::int64_t width, float* out, std::int64_t first, std::int64_t end) {
  each_run(end - first, [&](std::int64_t j, auto lanes) {
    V total = {};
    for (std::int64_t i = 0; i < count; ++i) {
      total += lanes.load(sums + i * width + first + j);
    }
    lanes.store(out + first + j, total);
  });
}

}  // namespace kf::simd::KF_SIMD_ISA
