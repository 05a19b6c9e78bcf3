#include "kernels/product/small.h"
#include "kernels/simd/transpose.h"
#include "kernels/simd/vector.h"

namespace kf::simd::KF_SIMD_ISA {
namespace {

// As many sums as there are registers for, beside a run of b and a number of a.
#if defined(__AVX512F__)
constexpr int kRows = 12;
#elif defined(__AVX2__)
constexpr int kRows = 6;
#else
constexpr int kRows = 4;
#endif
constexpr std::int64_t kColumns = 2 * kLanes;
constexpr std::int64_t kSum = 256;  // a block of b is (kSum, kColumns): 32 KB at most, on the stack

/// Where a block's numbers are: of b (sum, kColumns), `b_stride` from one to the next, and of a with strides by row and along the sum.
struct Block {
  const float *a, *b;
  float* c;
  std::int64_t a_row, a_along, b_stride, c_stride, sum, columns;
  bool add;
};

KF_SIMD_INLINE V load_of(const float* p, std::int64_t n) { return n >= kLanes ? load(p) : n > 0 ? load_first(p, n) : V{}; }
KF_SIMD_INLINE void store_of(float* p, V v, std::int64_t n) {
  if (n >= kLanes) {
    store(p, v);
  } else if (n > 0) {
    store_first(p, v, n);
  }
}

// Sums stay in registers only if the loops over them are unrolled before anything else is done to them.
#define KF_UNROLLED _Pragma("GCC unroll 16")

/// kM rows and kN vectors of columns, of which the last has what `last` says.
template <int kM, int kN, class Last>
KF_SIMD_INLINE void multiply(const Block& block, const Last& last) {
  V sums[kM][kN];
  KF_UNROLLED for (int i = 0; i < kM; ++i) {
    KF_UNROLLED for (int j = 0; j < kN; ++j) {
      const float* const c = block.c + i * block.c_stride + j * kLanes;
      sums[i][j] = !block.add ? V{} : j + 1 < kN ? load(c) : last.load(c);
    }
  }
  const float* a = block.a;
  const float* b = block.b;
  const std::int64_t a_row = block.a_row, a_along = block.a_along, b_stride = block.b_stride;
  for (std::int64_t k = 0; k < block.sum; ++k, a += a_along, b += b_stride) {
    V right[kN];
    KF_UNROLLED for (int j = 0; j < kN; ++j) { right[j] = load(b + j * kLanes); }
    KF_UNROLLED for (int i = 0; i < kM; ++i) {
      const V left = splat(a[i * a_row]);
      KF_UNROLLED for (int j = 0; j < kN; ++j) { sums[i][j] = fma(left, right[j], sums[i][j]); }
    }
  }
  KF_UNROLLED for (int i = 0; i < kM; ++i) {
    KF_UNROLLED for (int j = 0; j < kN; ++j) {
      float* const c = block.c + i * block.c_stride + j * kLanes;
      if (j + 1 < kN) {
        store(c, sums[i][j]);
      } else {
        last.store(c, sums[i][j]);
      }
    }
  }
}

template <int kM, int kN>
__attribute__((noinline)) void multiply_rows(const Block& block) {
  const std::int64_t left = block.columns - (kN - 1) * kLanes;
  if (left == kLanes) {
    multiply<kM, kN>(block, Whole());
  } else {
    multiply<kM, kN>(block, First{left});
  }
}

template <int kM>
KF_SIMD_INLINE void multiply_columns(const Block& block) {
  block.columns > kLanes ? multiply_rows<kM, 2>(block) : multiply_rows<kM, 1>(block);
}

/// The last rows, fewer than kM.
template <int kM>
KF_SIMD_INLINE void multiply_rest(const Block& block, std::int64_t rows) {
  if constexpr (kM > 1) {
    rows == kM - 1 ? multiply_columns<kM - 1>(block) : multiply_rest<kM - 1>(block, rows);
  }
}

/// b's rows first .. first + sum of a run of columns, with zeros up to kColumns.
KF_SIMD_INLINE void copy_run(const float* b, std::int64_t stride, std::int64_t sum, std::int64_t columns, float* to) {
  for (std::int64_t k = 0; k < sum; ++k) {
    for (int j = 0; j < 2; ++j) {
      store(to + k * kColumns + j * kLanes, load_of(b + k * stride + j * kLanes, columns - j * kLanes));
    }
  }
}

/// The same of b^T, whose columns lie along rows in memory.
KF_SIMD_INLINE void turn_run(const float* b, std::int64_t stride, std::int64_t sum, std::int64_t columns, float* to) {
  for (std::int64_t j = 0; j < columns; j += kLanes) {
    for (std::int64_t k = 0; k < sum; k += kLanes) {
      V tile[kLanes];
      for (int i = 0; i < kLanes; ++i) {
        tile[i] = j + i < columns ? load_of(b + (j + i) * stride + k, sum - k) : V{};
      }
      transpose(tile);
      for (int i = 0; i < kLanes; ++i) {
        if (k + i < sum) {
          store(to + (k + i) * kColumns + j, tile[i]);
        }
      }
    }
  }
}

}  // namespace

void small_product(const SmallProduct& p) {
  alignas(64) float packed[kSum * kColumns];
  Block block{};
  block.a_row = p.a_turned ? 1 : p.a_stride;
  block.a_along = p.a_turned ? p.a_stride : 1;
  block.c_stride = p.c_stride;
  for (std::int64_t k = 0; k == 0 || k < p.sum; k += kSum) {
    block.sum = p.sum - k < kSum ? p.sum - k : kSum;
    block.add = k > 0;
    for (std::int64_t j = 0; j < p.columns; j += kColumns) {
      block.columns = p.columns - j < kColumns ? p.columns - j : kColumns;
      if (p.b_turned) {
        turn_run(p.b + j * p.b_stride + k, p.b_stride, block.sum, block.columns, packed);
        block.b = packed;
        block.b_stride = kColumns;
      } else if (p.rows > kRows || block.columns % kLanes != 0) {
        copy_run(p.b + k * p.b_stride + j, p.b_stride, block.sum, block.columns, packed);
        block.b = packed;
        block.b_stride = kColumns;
      } else {  // read once: where it lies
        block.b = p.b + k * p.b_stride + j;
        block.b_stride = p.b_stride;
      }
      std::int64_t i = 0;
      for (; i + kRows <= p.rows; i += kRows) {
        block.a = p.a + i * block.a_row + k * block.a_along;
        block.c = p.c + i * p.c_stride + j;
        multiply_columns<kRows>(block);
      }
      block.a = p.a + i * block.a_row + k * block.a_along;
      block.c = p.c + i * p.c_stride + j;
      multiply_rest<kRows>(block, p.rows - i);
    }
  }
}

void few_rows_product(const SmallProduct& p) {
  for (std::int64_t j = 0; j < p.columns; j += kLanes) {
    const std::int64_t columns = p.columns - j;
    const float* right[kLanes];
    for (int n = 0; n < kLanes; ++n) {  // behind the last column it is computed once more
      right[n] = p.b + (n < columns ? j + n : p.columns - 1) * p.b_stride;
    }
    for (std::int64_t i = 0; i < p.rows; ++i) {
      const float* const a = p.a + i * p.a_stride;
      float* const c = p.c + i * p.c_stride + j;
      V sums[kLanes] = {};
      each_run(p.sum, [&](std::int64_t k, auto lanes) {
        const V left = lanes.load(a + k);
        for (int n = 0; n < kLanes; ++n) {
          sums[n] = fma(left, lanes.load(right[n] + k), sums[n]);
        }
      });
      transpose(sums);
      V all{};
      for (const V sum : sums) {
        all = all + sum;
      }
      store_of(c, all, columns);
    }
  }
}

}  // namespace kf::simd::KF_SIMD_ISA
