#include "kernels/layer_norm/layer_norm_rows.h"
#include "kernels/simd/vector.h"

namespace kf::simd::KF_SIMD_ISA {
namespace {

/// Zeros behind the last number of a row, where something else than zero was computed of nothing.
KF_SIMD_INLINE V inside(V v, Whole) { return v; }
KF_SIMD_INLINE V inside(V v, First first) { return first_of(v, V{}, first.n); }

/// The mean of f(j, lanes) over a row, by four sums: one would wait for its own last addition.
template <class F>
KF_SIMD_INLINE float mean_of(std::int64_t width, const F& f) {
  V sums[4] = {};
  std::int64_t j = 0;
  for (; j + 4 * kLanes <= width; j += 4 * kLanes) {
    for (int i = 0; i < 4; ++i) {
      sums[i] = f(j + i * kLanes, Whole(), sums[i]);
    }
  }
  each_run(width - j, [&](std::int64_t k, auto lanes) { sums[0] = f(j + k, lanes, sums[0]); });
  return sum((sums[0] + sums[1]) + (sums[2] + sums[3])) / static_cast<float>(width);
}

template <class T>
KF_SIMD_INLINE RowStatistics statistics_of(const T* h, std::int64_t width, float eps) {
  const float mean = mean_of(width, [&](std::int64_t j, auto lanes, V sum) { return sum + lanes.load(h + j); });
  const V middle = splat(mean);
  const float variance = mean_of(width, [&](std::int64_t j, auto lanes, V sum) {
    const V x = inside(lanes.load(h + j) - middle, lanes);
    return fma(x, x, sum);
  });
  return {mean, 1.0F / __builtin_sqrtf(variance + eps)};
}

template <class T>
void forward(const LayerNormForward& of, std::int64_t first, std::int64_t end) {
  for (std::int64_t r = first; r < end; ++r) {
    const T* h = row_of<T>(of.x, r);
    if (of.branch.data != nullptr) {
      const T* const x = h;
      const T* const branch = row_of<T>(of.branch, r);
      T* const sum = row_of<T>(of.h, r);
      each_run(of.width, [&](std::int64_t j, auto lanes) { lanes.store(sum + j, lanes.load(x + j) + lanes.load(branch + j)); });
      h = sum;  // as it is kept, rounded
    }
    const RowStatistics row = statistics_of(h, of.width, of.eps);
    of.statistics[r] = row;
    const V mean = splat(row.mean), scale = splat(row.inverse);
    T* const y = row_of<T>(of.y, r);
    each_run(of.width, [&](std::int64_t j, auto lanes) {
      const V n = (lanes.load(h + j) - mean) * scale;
      const V weighed = of.factor != nullptr ? n * lanes.load(of.factor + j) : n;
      lanes.store(y + j, of.bias != nullptr ? weighed + lanes.load(of.bias + j) : weighed);
    });
  }
}

/// What T makes of it.
KF_SIMD_INLINE V as(V v, const float*) { return rounded(v); }
KF_SIMD_INLINE V as(V v, const Bf16*) { return widen(narrow(v)); }

/// A row of the backward.
template <class T>
struct Row {
  const T* h;
  const T* gradient;
  V middle, scale;
  const float* factor;

  template <class Lanes>
  V normal(std::int64_t j, Lanes lanes) const {
    return (lanes.load(h + j) - middle) * scale;
  }
  /// g factor. Rounded, so that it is fused with nothing in one of the loops alone.
  template <class Lanes>
  V weighed(std::int64_t j, Lanes lanes) const {
    const V g = lanes.load(gradient + j);
    return factor != nullptr ? rounded(g * lanes.load(factor + j)) : g;
  }
};

template <class T>
KF_SIMD_INLINE void add_to_sums(const Row<T>& row, float* dfactor, float* dbias, std::int64_t width) {
  each_run(width, [&](std::int64_t j, auto lanes) {
    const V g = lanes.load(row.gradient + j);
    if (dfactor != nullptr) {
      lanes.store(dfactor + j, fma(g, row.normal(j, lanes), lanes.load(dfactor + j)));
    }
    if (dbias != nullptr) {
      lanes.store(dbias + j, g + lanes.load(dbias + j));
    }
  });
}

template <class T>
KF_SIMD_INLINE void write_dx(const LayerNormBackward& of, std::int64_t r, const Row<T>& row) {
  const V mean = splat(mean_of(of.width, [&](std::int64_t j, auto lanes, V sum) { return sum + row.weighed(j, lanes); }));
  const V along =
      splat(mean_of(of.width, [&](std::int64_t j, auto lanes, V sum) { return fma(row.weighed(j, lanes), row.normal(j, lanes), sum); }));
  T* const dx = row_of<T>(of.dx, r);
  const auto through_norm = [&](std::int64_t j, auto lanes) {
    return (row.weighed(j, lanes) - mean - row.normal(j, lanes) * along) * row.scale;
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
void backward(const LayerNormBackward& of, std::int64_t first, std::int64_t end) {
  const auto cleared = [&of](float* sums, std::int64_t block) {
    return sums == nullptr
               ? nullptr
               : static_cast<float*>(std::memset(sums + block * of.width, 0, static_cast<std::size_t>(of.width) * sizeof(float)));
  };
  for (std::int64_t block = first; block < end; ++block) {
    float* const dfactor = cleared(of.dfactor, block);
    float* const dbias = cleared(of.dbias, block);
    const std::int64_t last = (block + 1) * kLayerNormBlock < of.rows ? (block + 1) * kLayerNormBlock : of.rows;
    for (std::int64_t r = block * kLayerNormBlock; r < last; ++r) {
      const RowStatistics& statistics = of.statistics[r];
      const Row<T> row{row_of<T>(of.h, r), row_of<T>(of.gradient, r), splat(statistics.mean), splat(statistics.inverse), of.factor};
      if (dfactor != nullptr || dbias != nullptr) {
        add_to_sums(row, dfactor, dbias, of.width);
      }
      if (of.dx.data != nullptr) {
        write_dx(of, r, row);
      }
    }
  }
}

}  // namespace

void layer_norm_forward(const LayerNormForward& of, std::int64_t first, std::int64_t end) {
  of.bf16 ? forward<Bf16>(of, first, end) : forward<float>(of, first, end);
}

void layer_norm_backward(const LayerNormBackward& of, std::int64_t first, std::int64_t end) {
  of.bf16 ? backward<Bf16>(of, first, end) : backward<float>(of, first, end);
}

}  // namespace kf::simd::KF_SIMD_ISA
