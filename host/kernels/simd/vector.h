#pragma once
// Vectors of fp32 as wide as the instruction set that a *_simd.cpp file is compiled for, loaded from and stored to fp32 or bf16. For those
// files alone: everything is in the set's own namespace and nothing of the standard library's templates is used, since the linker would
// keep one copy of an inline function for all sets, and take code of AVX-512 to processors without it.

#include <cstdint>
#include <cstring>

#include "kernels/simd/rows.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

#ifndef KF_SIMD_ISA
#error "compile this through kf_folder (cmake/folder.cmake), which sets KF_SIMD_ISA"
#endif

#define KF_SIMD_INLINE static inline __attribute__((always_inline, unused))

namespace kf::simd::KF_SIMD_ISA {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX2__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif

using V __attribute__((vector_size(kLanes * 4))) = float;          // fp32
using I __attribute__((vector_size(kLanes * 4))) = std::int32_t;   // of comparisons: -1 or 0
using U __attribute__((vector_size(kLanes * 4))) = std::uint32_t;  // bits
using H __attribute__((vector_size(kLanes * 2))) = std::uint16_t;  // bf16
using P __attribute__((vector_size(kLanes * 4))) = std::uint64_t;  // bits of pairs of neighbours
using B __attribute__((vector_size(kLanes))) = std::uint8_t;       // bytes

/// bf16 in memory.
struct Bf16 {
  std::uint16_t bits;
};

template <class T>
KF_SIMD_INLINE T* row_of(const Rows& rows, std::int64_t r) {
  const std::int64_t outer = rows.inner == 1 ? r : r / rows.inner;
  return static_cast<T*>(rows.data) + outer * rows.outer_stride + (r - outer * rows.inner) * rows.inner_stride;
}

KF_SIMD_INLINE V splat(float x) { return x - V{}; }
KF_SIMD_INLINE V fma(V a, V b, V c) { return a * b + c; }  // one instruction where there is one
KF_SIMD_INLINE V max(V a, V b) { return a > b ? a : b; }
KF_SIMD_INLINE V min(V a, V b) { return a < b ? a : b; }
/// x itself, rounded: a product that is added to something becomes no FMA with it.
KF_SIMD_INLINE V rounded(V x) {
#if defined(__x86_64__)
  __asm__("" : "+x"(x));
#elif defined(__aarch64__)
  __asm__("" : "+w"(x));
#endif
  return x;
}
KF_SIMD_INLINE U bits_of(V x) { return (U)x; }
KF_SIMD_INLINE V of_bits(U x) { return (V)x; }

KF_SIMD_INLINE V load(const float* p) {
  V v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
KF_SIMD_INLINE void store(float* p, V v) { std::memcpy(p, &v, sizeof v); }

KF_SIMD_INLINE V widen(H h) { return of_bits(__builtin_convertvector(h, U) << 16); }
/// To nearest, ties to even; NaN stays NaN.
KF_SIMD_INLINE H narrow(V v) {
#ifdef __AVX512BF16__
  return (H)_mm512_cvtneps_pbh((__m512)v);
#else
  const U x = bits_of(v);
  const U rounded = (x + 0x7fff + ((x >> 16) & 1)) >> 16;
  const I is_nan = v != v;  // NOLINT(misc-redundant-expression): lanes that are NaN
  const U chosen = is_nan ? (U{} + 0x7fc0) : rounded;
#if defined(__AVX512F__)
  return (H)_mm512_cvtepi32_epi16((__m512i)chosen);
#elif defined(__AVX2__)
  const __m256i packed = _mm256_packus_epi32((__m256i)chosen, (__m256i)chosen);
  return (H)_mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0xd8));
#else
  return __builtin_convertvector(chosen, H);
#endif
#endif
}
KF_SIMD_INLINE V load(const Bf16* p) {
  H h;
  std::memcpy(&h, p, sizeof h);
  return widen(h);
}
KF_SIMD_INLINE void store(Bf16* p, V v) {
  const H h = narrow(v);
  std::memcpy(p, &h, sizeof h);
}

/// The first n < kLanes numbers, and zeros behind them.
template <class T>
KF_SIMD_INLINE V load_first(const T* p, std::int64_t n) {
#ifdef __AVX512F__
  const auto mask = static_cast<__mmask16>((1U << n) - 1);
  if constexpr (sizeof(T) == sizeof(float)) {
    return (V)_mm512_maskz_loadu_ps(mask, p);
  } else {
    return widen((H)_mm256_maskz_loadu_epi16(mask, p));
  }
#else
  T all[kLanes] = {};
  std::memcpy(all, p, static_cast<std::size_t>(n) * sizeof(T));
  return load(all);
#endif
}
template <class T>
KF_SIMD_INLINE void store_first(T* p, V v, std::int64_t n) {
#ifdef __AVX512F__
  const auto mask = static_cast<__mmask16>((1U << n) - 1);
  if constexpr (sizeof(T) == sizeof(float)) {
    _mm512_mask_storeu_ps(p, mask, (__m512)v);
  } else {
    _mm256_mask_storeu_epi16(p, mask, (__m256i)narrow(v));
  }
#else
  T all[kLanes];
  store(all, v);
  std::memcpy(p, all, static_cast<std::size_t>(n) * sizeof(T));
#endif
}
/// Lanes below n of v, those of `rest` behind them.
KF_SIMD_INLINE V first_of(V v, V rest, std::int64_t n) {
  I lane;
  for (int i = 0; i < kLanes; ++i) {
    lane[i] = i;
  }
  return lane < static_cast<std::int32_t>(n) ? v : rest;
}

/// A whole vector's numbers at a time, or the first n of one.
struct Whole {
  template <class T>
  V load(const T* p) const {
    return simd::KF_SIMD_ISA::load(p);
  }
  template <class T>
  void store(T* p, V v) const {
    simd::KF_SIMD_ISA::store(p, v);
  }
};
struct First {
  std::int64_t n;
  template <class T>
  V load(const T* p) const {
    return load_first(p, n);
  }
  template <class T>
  void store(T* p, V v) const {
    store_first(p, v, n);
  }
};
/// f(j, lanes) for runs of kLanes of the numbers 0 .. width, from j; `lanes` loads and stores what there is of one.
template <class F>
KF_SIMD_INLINE void each_run(std::int64_t width, const F& f) {
  std::int64_t j = 0;
  for (; j + kLanes <= width; j += kLanes) {
    f(j, Whole());
  }
  if (j < width) {
    f(j, First{width - j});
  }
}

/// Neighbours change places: (b, a, d, c, ..) of (a, b, c, d, ..).
KF_SIMD_INLINE V swapped(V v) {
  const P pairs = (P)v;
  return (V)((pairs << 32) | (pairs >> 32));
}
/// (a, a, b, b, ..) of n <= kLanes / 2 numbers.
KF_SIMD_INLINE V load_twice(const float* p, std::int64_t n) {
  using Half __attribute__((vector_size(kLanes * 2))) = std::uint32_t;
  Half half = {};
  if (n == kLanes / 2) {
    std::memcpy(&half, p, sizeof half);
  } else {
    std::memcpy(&half, p, static_cast<std::size_t>(n) * sizeof(float));
  }
  const P pairs = __builtin_convertvector(half, P);
  return (V)(pairs | (pairs << 32));
}

KF_SIMD_INLINE float sum(V v) {
  float x[kLanes];
  store(x, v);
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) {
      x[i] += x[i + half];
    }
  }
  return x[0];
}
KF_SIMD_INLINE float largest(V v) {
  float x[kLanes];
  store(x, v);
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) {
      x[i] = x[i] > x[i + half] ? x[i] : x[i + half];
    }
  }
  return x[0];
}

KF_SIMD_INLINE I load_bytes(const std::uint8_t* p) {
  B b;
  std::memcpy(&b, p, sizeof b);
  return __builtin_convertvector(b, I);
}
KF_SIMD_INLINE void store_bytes(std::uint8_t* p, I v) {
  const B b = __builtin_convertvector(v, B);
  std::memcpy(p, &b, sizeof b);
}

KF_SIMD_INLINE V root(V v) {
#if defined(__AVX512F__)
  return (V)_mm512_sqrt_ps((__m512)v);
#elif defined(__AVX2__)
  return (V)_mm256_sqrt_ps((__m256)v);
#elif defined(__x86_64__)
  return (V)_mm_sqrt_ps((__m128)v);
#else
  for (int i = 0; i < kLanes; ++i) {
    v[i] = __builtin_sqrtf(v[i]);
  }
  return v;
#endif
}

/// e^x to 2 units in the last place: 2^n times a polynomial of the rest, which is within ln 2 / 2 (as Cephes does it). Below -87.3 it is
/// 0; above 88.3 it is e^88.3. NaN is passed on.
KF_SIMD_INLINE V exp(V x) {
  const V bounded = min(splat(88.3F), x);  // x itself if it is NaN
  const V magic = splat(12582912.0F);      // 1.5 * 2^23: the sum's low bits are the rounded number
  const V shifted = fma(bounded, splat(1.44269504F), magic);
  const V n = shifted - magic;
  V r = fma(n, splat(-0.693359375F), bounded);
  r = fma(n, splat(2.12194440e-4F), r);
  V p = splat(1.9875691500e-4F);
  p = fma(p, r, splat(1.3981999507e-3F));
  p = fma(p, r, splat(8.3334519073e-3F));
  p = fma(p, r, splat(4.1665795894e-2F));
  p = fma(p, r, splat(1.6666665459e-1F));
  p = fma(p, r, splat(5.0000001201e-1F));
  p = fma(p, r * r, r) + splat(1.0F);
  const U power = (bits_of(shifted) - bits_of(magic) + 127) << 23;
  return bounded < splat(-87.3F) ? V{} : p * of_bits(power);
}

/// The natural logarithm to 2 units in the last place of the larger of 1 and the result: of the exponent, and a polynomial of what is
/// within 1/sqrt(2) .. sqrt(2) (as Cephes does it). Of positive normal numbers; NaN is passed on.
KF_SIMD_INLINE V log(V x) {
  const U bits = bits_of(x);
  const U shifted = bits - 0x3f3504f3;  // sqrt(1/2) begins an octave
  const V n = __builtin_convertvector((I)shifted >> 23, V);
  const V y = of_bits((shifted & 0x007fffff) + 0x3f3504f3) - splat(1.0F);
  V p = splat(7.0376836292e-2F);
  p = fma(p, y, splat(-1.1514610310e-1F));
  p = fma(p, y, splat(1.1676998740e-1F));
  p = fma(p, y, splat(-1.2420140846e-1F));
  p = fma(p, y, splat(1.4249322787e-1F));
  p = fma(p, y, splat(-1.6668057665e-1F));
  p = fma(p, y, splat(2.0000714765e-1F));
  p = fma(p, y, splat(-2.4999993993e-1F));
  p = fma(p, y, splat(3.3333331174e-1F));
  const V z = y * y;
  V tail = fma(n, splat(-2.12194440e-4F), p * y * z);
  tail = fma(z, splat(-0.5F), tail);
  const I is_nan = x != x;  // NOLINT(misc-redundant-expression): lanes that are NaN
  return is_nan ? x : fma(n, splat(0.693359375F), y + tail);
}

/// Whether a comparison holds in any lane.
KF_SIMD_INLINE bool any(I lanes) {
  std::int32_t all = 0;
  for (int i = 0; i < kLanes; ++i) {
    all |= lanes[i];
  }
  return all != 0;
}

KF_SIMD_INLINE V sigmoid(V x) { return splat(1.0F) / (splat(1.0F) + exp(-x)); }
/// To 4 units in the last place: by a polynomial up to 0.625 (as Cephes does it), by exp behind it. (Caps multiply it by large numbers.)
KF_SIMD_INLINE V tanh(V x) {
  const V z = x * x;
  V p = splat(-5.70498872745e-3F);
  p = fma(p, z, splat(2.06390887954e-2F));
  p = fma(p, z, splat(-5.37397155531e-2F));
  p = fma(p, z, splat(1.33314422036e-1F));
  p = fma(p, z, splat(-3.33332819422e-1F));
  const V far = splat(1.0F) - splat(2.0F) / (exp(x + x) + splat(1.0F));
  return z < splat(0.390625F) ? fma(p * z, x, x) : far;
}

}  // namespace kf::simd::KF_SIMD_ISA
