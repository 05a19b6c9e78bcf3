// AdamW of a weight, block by block: what is not fp32 in memory is widened and rounded in a block's own buffers, which stay in the cache.

#include "kernels/adamw/rows.h"
#include "kernels/simd/vector.h"

namespace kf::simd::KF_SIMD_ISA {
namespace {

constexpr int kDecades = 7;
constexpr float kTens[kDecades] = {1e-6F, 1e-5F, 1e-4F, 1e-3F, 1e-2F, 1e-1F, 1.0F};  // where each ends
constexpr float kPerTen[kDecades] = {1e6F, 1e5F, 1e4F, 1e3F, 1e2F, 1e1F, 1.0F};

void widen_all(const Bf16* in, float* out, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    store(out + i, load(in + i));
  }
  if (i < n) {
    store_first(out + i, load_first(in + i, n - i), n - i);
  }
}

void narrow_all(const float* in, Bf16* out, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    store(out + i, load(in + i));
  }
  if (i < n) {
    store_first(out + i, load_first(in + i, n - i), n - i);
  }
}

/// Bytes of a tensor: the scales of its blocks lie before them.
struct Bytes {
  float* scale;          // of this block
  std::uint8_t* places;  // the block's, in the map
};

Bytes bytes_of(void* tensor, std::int64_t block, std::int64_t numbers) {
  const std::int64_t blocks = (numbers + kAdamWBlock - 1) / kAdamWBlock;
  return {static_cast<float*>(tensor) + block, static_cast<std::uint8_t*>(tensor) + 4 * blocks + block * kAdamWBlock};
}

/// The map by its formula, with nothing to look up (byte_map.h has it as a table, which the last bits of a product may miss): a number is
/// one of 2^e pieces of its decade, so the count of a decade's pieces plus the piece is a number p whose exponent says the decade, and
/// whose fraction the piece. p is place + 1 without a sign, |place - 127| with one; decades begin at p = `first`, and beside them there
/// are 0 below and 1 above.
struct Map {
  V pieces[kDecades];   // of a decade: how many it has
  V borders[kDecades];  // magnitudes above which numbers belong to it
  V top;                // magnitude above which a number is 1
  V first, last;        // p of the smallest number above 0, and p of 1
  bool is_signed;
};

KF_SIMD_INLINE Map map_of(const ByteMap& map) {
  Map m;
  const int first = map.is_signed ? 1 : 2;
  const float* const above = map.middles + (map.is_signed ? 127 : 0);  // the middles from 0 up
  for (int d = 0; d < kDecades; ++d) {
    m.pieces[d] = splat(static_cast<float>(first << d));
    m.borders[d] = splat(above[(first << d) - first]);
  }
  m.first = splat(static_cast<float>(first));
  m.last = splat(static_cast<float>(first << kDecades));
  m.top = splat(map.middles[254]);
  m.is_signed = map.is_signed;
  return m;
}

/// The number at `place`.
KF_SIMD_INLINE V number_of(const Map& m, I place) {
  const I below = place < 127;
  const I p = m.is_signed ? (below ? 127 - place : place - 127) : place + 1;
  const V count = __builtin_convertvector(p, V);
  V ten = splat(kTens[0]), pieces = m.pieces[0];
  for (int d = 1; d < kDecades; ++d) {
    ten = count < m.pieces[d] ? ten : splat(kTens[d]);
    pieces = count < m.pieces[d] ? pieces : m.pieces[d];
  }
  const V per_piece = of_bits((254U << 23) - bits_of(pieces));  // of a power of two
  V x = fma((count - pieces + 0.5F) * per_piece, splat(0.9F), splat(0.1F)) * ten;
  x = count < m.first ? V{} : x;
  x = count < m.last ? x : splat(1.0F);
  return m.is_signed ? (below ? -x : x) : x;
}

/// The place of the number nearest to `share`, from -1 to 1.
KF_SIMD_INLINE I place_of(const Map& m, V share) {
  const V x = max(share, -share);
  V per_ten = splat(kPerTen[0]), pieces = m.pieces[0];
  for (int d = 1; d < kDecades; ++d) {
    per_ten = x > m.borders[d] ? splat(kPerTen[d]) : per_ten;
    pieces = x > m.borders[d] ? m.pieces[d] : pieces;
  }
  const V piece = (x * per_ten - 0.1F) * (pieces * (1 / 0.9F));
  const V count = min(max(pieces + piece, pieces), pieces + pieces - 1.0F);
  const I smallest = __builtin_convertvector(m.first, I);
  const I nothing = m.is_signed ? I{} : (x > 0.0F ? smallest : smallest - 1);  // without a sign, 0 is for 0 alone
  I p = x > m.borders[0] ? __builtin_convertvector(count, I) : nothing;        // towards 0
  p = share > m.top ? __builtin_convertvector(m.last, I) : p;
  return m.is_signed ? (share < 0.0F ? 127 - p : 127 + p) : p - 1;
}

/// Floats of 8 bits: fraction bits, the exponent's bias, what a block's largest number is.
struct E4m3 {
  static constexpr int kFraction = 3, kBias = 7;
  static constexpr float kTop = kTopE4m3;
  static constexpr bool kSigned = true;
};
struct E5m2 {
  static constexpr int kFraction = 2, kBias = 15;
  static constexpr float kTop = kTopE5m2;
  static constexpr bool kSigned = false;
};

/// 2^exponent.
constexpr float power_of_two(int exponent) {
  float out = 1;
  for (; exponent > 0; --exponent) {
    out *= 2;
  }
  for (; exponent < 0; ++exponent) {
    out /= 2;
  }
  return out;
}

template <class Float>
struct Fp8 {
  static constexpr int kShift = 23 - Float::kFraction;
  static constexpr float kUnit = power_of_two(1 - Float::kBias - Float::kFraction);  // of numbers below the normal ones
};

template <class Float>
KF_SIMD_INLINE V number_of(const Fp8<Float>& /*f*/, I code) {
  const U magnitude = (U)code & 0x7f;
  const V normal = of_bits((magnitude << Fp8<Float>::kShift) + (static_cast<std::uint32_t>(127 - Float::kBias) << 23));
  const V below = __builtin_convertvector((I)magnitude, V) * Fp8<Float>::kUnit;
  const V x = ((I)magnitude < (1 << Float::kFraction) ? below : normal) * (1 / Float::kTop);
  return Float::kSigned ? of_bits(bits_of(x) | (((U)code & 0x80) << 24)) : x;
}

/// The code of the number nearest to `share`, from -1 to 1, ties to even.
template <class Float>
KF_SIMD_INLINE I place_of(const Fp8<Float>& /*f*/, V share) {
  constexpr int kShift = Fp8<Float>::kShift;
  constexpr float kUnit = Fp8<Float>::kUnit;
  const V x = (Float::kSigned ? max(share, -share) : max(share, V{})) * Float::kTop;
  const U bits = bits_of(x);
  const U normal = ((bits + ((1U << (kShift - 1)) - 1) + ((bits >> kShift) & 1)) >> kShift) -
                   (static_cast<std::uint32_t>(127 - Float::kBias) << Float::kFraction);
  const V magic = splat(power_of_two(23) * kUnit);  // the sum's low bits are the rounded number of units
  const U below = bits_of(x + magic) - bits_of(magic);
  const I is_below = x < kUnit * static_cast<float>(1 << Float::kFraction);
  const I code = (I)(is_below ? below : normal);
  if (Float::kSigned) {
    const I negative = (share < 0.0F) & (code > 0);  // there is one 0
    return code | (negative & 0x80);
  }
  const I lost = (x > 0.0F) & (code == 0);  // without a sign, 0 is for 0 alone
  return lost ? I{} + 1 : code;
}

template <class Code>
void read_bytes(const Code& m, const Bytes& bytes, float* out, std::int64_t n) {
  const V scale = splat(*bytes.scale);
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    store(out + i, number_of(m, load_bytes(bytes.places + i)) * scale);
  }
  if (i < n) {
    std::uint8_t rest[kLanes] = {};
    std::memcpy(rest, bytes.places + i, static_cast<std::size_t>(n - i));
    store_first(out + i, number_of(m, load_bytes(rest)) * scale, n - i);
  }
}

/// The one of largest magnitude, with its sign, the first of several; NaN beside what is not finite.
float extreme(const float* x, std::int64_t n) {
  V high = {};
  V low = {};
  V nothing = {};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    high = max(high, load(x + i));
    low = max(low, -load(x + i));
    nothing += load(x + i) * 0.0F;
  }
  if (i < n) {
    high = max(high, load_first(x + i, n - i));
    low = max(low, -load_first(x + i, n - i));
    nothing += load_first(x + i, n - i) * 0.0F;
  }
  const float above = largest(high), below = largest(low);
  if (const float zero = sum(nothing); zero != 0 || above != below) {
    return zero != 0 ? zero : above > below ? above : -below;
  }
  for (std::int64_t k = 0; k < n; ++k) {
    if (__builtin_fabsf(x[k]) == above) {
      return x[k];
    }
  }
  return above;
}

template <class Code>
void write_bytes(const Code& m, const float* x, const Bytes& bytes, std::int64_t n) {
  const float found = extreme(x, n);
  const float scale = __builtin_fabsf(found) < 0x1p-126F ? 0 : found;
  const V inverse = splat(scale == 0 ? 0 : 1 / scale);
  const auto places = [&m, inverse](V some) { return place_of(m, max(min(some * inverse, splat(1.0F)), splat(-1.0F))); };  // NaN becomes 1
  *bytes.scale = scale;
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    store_bytes(bytes.places + i, places(load(x + i)));
  }
  if (i < n) {
    std::uint8_t rest[kLanes];
    store_bytes(rest, places(load_first(x + i, n - i)));
    std::memcpy(bytes.places + i, rest, static_cast<std::size_t>(n - i));
  }
}

/// A block of a tensor as fp32: where it lies, or in `buffer`.
float* opened(void* tensor, Stored as, const ByteMap* map, std::int64_t block, std::int64_t numbers, std::int64_t n, float* buffer) {
  switch (as) {
    case Stored::fp32: return static_cast<float*>(tensor) + block * kAdamWBlock;
    case Stored::bf16: widen_all(static_cast<const Bf16*>(tensor) + block * kAdamWBlock, buffer, n); break;
    case Stored::bytes: read_bytes(map_of(*map), bytes_of(tensor, block, numbers), buffer, n); break;
    case Stored::e4m3: read_bytes(Fp8<E4m3>(), bytes_of(tensor, block, numbers), buffer, n); break;
    case Stored::e5m2: read_bytes(Fp8<E5m2>(), bytes_of(tensor, block, numbers), buffer, n); break;
  }
  return buffer;
}

/// Puts back what `opened` gave.
void close(void* tensor, Stored as, const ByteMap* map, std::int64_t block, std::int64_t numbers, std::int64_t n, const float* buffer) {
  switch (as) {
    case Stored::fp32: break;
    case Stored::bf16: narrow_all(buffer, static_cast<Bf16*>(tensor) + block * kAdamWBlock, n); break;
    case Stored::bytes: write_bytes(map_of(*map), buffer, bytes_of(tensor, block, numbers), n); break;
    case Stored::e4m3: write_bytes(Fp8<E4m3>(), buffer, bytes_of(tensor, block, numbers), n); break;
    case Stored::e5m2: write_bytes(Fp8<E5m2>(), buffer, bytes_of(tensor, block, numbers), n); break;
  }
}

struct Rates {
  V factor, new_m, beta2, new_v, eps, eps_root, keep, of_m, of_gradient, of_v;
};

Rates rates_of(const AdamWRow& row, const AdamWRates& r) {
  return {splat(r.factor),   splat(r.new_m),  splat(r.beta2),  splat(r.new_v),         splat(r.eps),
          splat(r.eps_root), splat(row.keep), splat(row.of_m), splat(row.of_gradient), splat(row.of_v)};
}

KF_SIMD_INLINE V moved(const Rates& r, V w, V gradient, V& m, V& v) {
  const V g = gradient * r.factor;
  m = fma(g - m, r.new_m, m);
  v = fma(g * g, r.new_v, v * r.beta2);
  const V divisor = root(fma(v, r.of_v, r.eps_root)) + r.eps;
  return w * r.keep - fma(m, r.of_m, g * r.of_gradient) / divisor;
}

void move(const Rates& r, float* w, const float* g, float* m, float* v, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    V mean = load(m + i), square = load(v + i);
    store(w + i, moved(r, load(w + i), load(g + i), mean, square));
    store(m + i, mean);
    store(v + i, square);
  }
  if (const std::int64_t rest = n - i; rest > 0) {
    V mean = load_first(m + i, rest), square = load_first(v + i, rest);
    store_first(w + i, moved(r, load_first(w + i, rest), load_first(g + i, rest), mean, square), rest);
    store_first(m + i, mean, rest);
    store_first(v + i, square, rest);
  }
}

}  // namespace

void adamw_blocks(const AdamWRow& row, const AdamWRates& rates, std::int64_t first, std::int64_t end) {
  float buffers[4][kAdamWBlock];
  const Rates r = rates_of(row, rates);
  for (std::int64_t block = first; block < end; ++block) {
    const std::int64_t at = block * kAdamWBlock, all = row.numbers;
    const std::int64_t n = all - at < kAdamWBlock ? all - at : kAdamWBlock;
    float* const w = opened(row.weight, row.weight_as, nullptr, block, all, n, buffers[0]);
    const float* const g = opened(const_cast<void*>(row.gradient), row.gradient_as, nullptr, block, all, n, buffers[1]);
    float* const m = opened(row.m, row.m_as, rates.map_m, block, all, n, buffers[2]);
    float* const v = opened(row.v, row.v_as, rates.map_v, block, all, n, buffers[3]);
    move(r, w, g, m, v, n);
    close(row.weight, row.weight_as, nullptr, block, all, n, w);
    close(row.m, row.m_as, rates.map_m, block, all, n, m);
    close(row.v, row.v_as, rates.map_v, block, all, n, v);
    if (row.value != nullptr) {
      narrow_all(w, static_cast<Bf16*>(row.value) + at, n);
    }
  }
}

}  // namespace kf::simd::KF_SIMD_ISA
