// AdamW of a weight, block by block: what is not fp32 in memory is widened and rounded in a block's own buffers, which stay in the cache.

#include "kernels/adamw/rows.h"
#include "kernels/simd/vector.h"

namespace kf::simd::KF_SIMD_ISA {
namespace {

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

void read_bytes(const ByteMap& map, const Bytes& bytes, float* out, std::int64_t n) {
  const float scale = *bytes.scale;
  for (std::int64_t i = 0; i < n; ++i) {
    out[i] = map.values[bytes.places[i]] * scale;
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

void write_bytes(const ByteMap& map, const float* x, const Bytes& bytes, std::int64_t n) {
  const float found = extreme(x, n);
  const float scale = __builtin_fabsf(found) < 0x1p-126F ? 0 : found;
  const float inverse = scale == 0 ? 0 : 1 / scale;
  *bytes.scale = scale;
  for (std::int64_t i = 0; i < n; ++i) {
    float share = x[i] * inverse;
    share = share < 1 ? share : 1;
    share = share > -1 ? share : -1;
    std::uint32_t bits = 0;
    std::memcpy(&bits, &share, sizeof bits);
    const std::int32_t kind = static_cast<std::int32_t>((bits & 0x7fffffff) >> 16) - ByteMap::kFirst;
    std::uint8_t place = map.begin[(kind < 0 ? 0 : kind) + (bits >> 31 != 0 ? ByteMap::kKinds : 0)];
    place = static_cast<std::uint8_t>(place + (share > map.middles[place] ? 1 : 0));
    const bool lost = !map.is_signed && place == 0 && x[i] > 0 && scale != 0;
    bytes.places[i] = lost ? 1 : place;
  }
}

/// A block of a tensor as fp32: where it lies, or in `buffer`.
float* opened(void* tensor, Stored as, const ByteMap* map, std::int64_t block, std::int64_t numbers, std::int64_t n, float* buffer) {
  switch (as) {
    case Stored::fp32: return static_cast<float*>(tensor) + block * kAdamWBlock;
    case Stored::bf16: widen_all(static_cast<const Bf16*>(tensor) + block * kAdamWBlock, buffer, n); break;
    case Stored::bytes: read_bytes(*map, bytes_of(tensor, block, numbers), buffer, n); break;
  }
  return buffer;
}

/// Puts back what `opened` gave.
void close(void* tensor, Stored as, const ByteMap* map, std::int64_t block, std::int64_t numbers, std::int64_t n, const float* buffer) {
  switch (as) {
    case Stored::fp32: break;
    case Stored::bf16: narrow_all(buffer, static_cast<Bf16*>(tensor) + block * kAdamWBlock, n); break;
    case Stored::bytes: write_bytes(*map, buffer, bytes_of(tensor, block, numbers), n); break;
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
