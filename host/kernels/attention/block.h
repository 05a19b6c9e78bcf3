#pragma once
// Small blocks of numbers in a thread's own memory, and their products. For *_simd.cpp files alone.

#include "kernels/simd/transpose.h"
#include "kernels/simd/vector.h"

namespace kf::simd::KF_SIMD_ISA {

KF_SIMD_INLINE std::int64_t up_to(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit * unit; }
KF_SIMD_INLINE std::int64_t smaller(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
KF_SIMD_INLINE std::int64_t larger(std::int64_t a, std::int64_t b) { return a > b ? a : b; }

KF_SIMD_INLINE V raw(const void* p) {
  V v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
/// The first `bytes` of a vector, and zeros.
KF_SIMD_INLINE V raw_first(const void* p, std::int64_t bytes) {
  V v{};
  std::memcpy(&v, p, static_cast<std::size_t>(bytes));
  return v;
}

// A form says how factors of a product lie in memory: as units of 32 bits, each of kPair neighbours along the index that is summed over.
// `product` multiplies units, and the rest says how units are made of numbers in memory and of what was computed.

/// A unit is an fp32.
struct Wide {
  static constexpr std::int64_t kPair = 1;
  KF_SIMD_INLINE V add_product(V a, V b, V c) { return fma(a, b, c); }
  /// Units along a row, of which n numbers are left.
  template <class T>
  KF_SIMD_INLINE V along(const T* p, std::int64_t n) {
    return n >= kLanes ? load(p) : load_first(p, n);
  }
  /// Results of the rows j and j + 1 of (rows, ld), and one of a row, as units of a left factor: summed over rows, and along them.
  KF_SIMD_INLINE void put_over(float* to, std::int64_t ld, std::int64_t j, std::int64_t column, V first, V second) {
    store(to + j * ld + column, first);
    store(to + (j + 1) * ld + column, second);
  }
  KF_SIMD_INLINE void put_along(float* to, std::int64_t ld, std::int64_t j, std::int64_t column, V v) { store(to + j * ld + column, v); }
};

#ifdef __AVX512BF16__
/// A unit is two bf16, the first in the lower half: twice the products an instruction, summed in fp32.
struct Pairs {
  static constexpr std::int64_t kPair = 2;
  KF_SIMD_INLINE V add_product(V a, V b, V c) { return (V)_mm512_dpbf16_ps((__m512)c, (__m512bh)a, (__m512bh)b); }
  KF_SIMD_INLINE V along(const Bf16* p, std::int64_t n) { return n >= 2 * kLanes ? raw(p) : raw_first(p, 2 * n); }
  /// Units of one number of each of two rows.
  KF_SIMD_INLINE V across(H first, H second) {
    return of_bits(__builtin_convertvector(first, U) | (__builtin_convertvector(second, U) << 16));
  }
  KF_SIMD_INLINE void put_over(float* to, std::int64_t ld, std::int64_t j, std::int64_t column, V first, V second) {
    store(to + j / 2 * ld + column, across(narrow(first), narrow(second)));
  }
  KF_SIMD_INLINE void put_along(float* to, std::int64_t ld, std::int64_t j, std::int64_t column, V v) {
    const H h = narrow(v);
    std::memcpy(to + j * ld + column / 2, &h, sizeof h);
  }
};
#endif

/// One unit in all lanes, bit by bit.
KF_SIMD_INLINE V every(const float* unit) {
  std::uint32_t bits;
  std::memcpy(&bits, unit, sizeof bits);
  return of_bits(U{} + bits);
}

/// Rows of numbers in memory to (rows, ld) units, each row's along it, with zeros up to ld: the left factor of sums along the row.
template <class Form, class T>
KF_SIMD_INLINE void pack_along(const T* const* rows, std::int64_t count, std::int64_t width, float* to, std::int64_t ld) {
  for (std::int64_t r = 0; r < count; ++r) {
    for (std::int64_t u = 0; u < ld; u += kLanes) {
      const std::int64_t left = width - u * Form::kPair;
      store(to + r * ld + u, left > 0 ? Form::along(rows[r] + u * Form::kPair, left) : V{});
    }
  }
}

/// The same, transposed: (units of width, ld), with zeros behind `count` rows: the right factor of sums along the row.
template <class Form, class T>
KF_SIMD_INLINE void pack_turned(const T* const* rows, std::int64_t count, std::int64_t width, float* to, std::int64_t ld) {
  const std::int64_t units = (width + Form::kPair - 1) / Form::kPair;
  for (std::int64_t r = 0; r < ld; r += kLanes) {
    for (std::int64_t u = 0; u < units; u += kLanes) {
      V tile[kLanes];
      for (int i = 0; i < kLanes; ++i) {
        tile[i] = r + i < count ? Form::along(rows[r + i] + u * Form::kPair, width - u * Form::kPair) : V{};
      }
      transpose(tile);
      for (int i = 0; i < kLanes; ++i) {
        if (u + i < units) {
          store(to + (u + i) * ld + r, tile[i]);
        }
      }
    }
  }
}

/// Rows to (rows / kPair, ld), with zeros up to ld and to an even number of rows: the right factor of sums over rows.
template <class Form, class T>
KF_SIMD_INLINE void pack_over(const T* const* rows, std::int64_t count, std::int64_t width, float* to, std::int64_t ld) {
  if constexpr (Form::kPair == 1) {
    pack_along<Form>(rows, count, width, to, ld);
  } else {
    const auto part = [&](std::int64_t r, std::int64_t d) {
      H h{};
      if (r < count && d < width) {
        std::memcpy(&h, rows[r] + d, static_cast<std::size_t>(2 * smaller(kLanes, width - d)));
      }
      return h;
    };
    for (std::int64_t r = 0; r < count; r += 2) {
      for (std::int64_t d = 0; d < ld; d += kLanes) {
        store(to + r / 2 * ld + d, Form::across(part(r, d), part(r + 1, d)));
      }
    }
  }
}

/// The left factor of a product in units: (rows, sum) where kAlong, with `ld` units from row to row, else (sum, rows).
enum class Order { along, over };

template <class Form, Order kOrder, int kM, int kN>
KF_SIMD_INLINE void product_part(const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float* c, std::int64_t ldc,
                                 std::int64_t sum, bool add) {
  V part[kM][kN];
  for (int i = 0; i < kM; ++i) {
    for (int j = 0; j < kN; ++j) {
      part[i][j] = add ? load(c + i * ldc + j * kLanes) : V{};
    }
  }
  for (std::int64_t k = 0; k < sum; ++k) {
    V right[kN];
    for (int j = 0; j < kN; ++j) {
      right[j] = load(b + k * ldb + j * kLanes);
    }
    for (int i = 0; i < kM; ++i) {
      const V left = every(kOrder == Order::along ? a + i * lda + k : a + k * lda + i);
      for (int j = 0; j < kN; ++j) {
        part[i][j] = Form::add_product(left, right[j], part[i][j]);
      }
    }
  }
  for (int i = 0; i < kM; ++i) {
    for (int j = 0; j < kN; ++j) {
      store(c + i * ldc + j * kLanes, part[i][j]);
    }
  }
}

/// c (rows, columns) becomes, or grows by, a b, with `sum` units each. Rows are computed by 8 and columns by kLanes: there is memory.
template <class Form, Order kOrder>
static __attribute__((noinline)) void product(const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float* c,
                                              std::int64_t ldc, std::int64_t rows, std::int64_t columns, std::int64_t sum, bool add) {
  constexpr int kM = kLanes == 16 ? 8 : 4;  // as many sums as there are registers for
  for (std::int64_t j = 0; j < columns; j += 2 * kLanes) {
    for (std::int64_t i = 0; i < rows; i += kM) {
      const float* const left = a + (kOrder == Order::along ? i * lda : i);
      if (columns - j > kLanes) {
        product_part<Form, kOrder, kM, 2>(left, lda, b + j, ldb, c + i * ldc + j, ldc, sum, add);
      } else {
        product_part<Form, kOrder, kM, 1>(left, lda, b + j, ldb, c + i * ldc + j, ldc, sum, add);
      }
    }
  }
}

}  // namespace kf::simd::KF_SIMD_ISA
