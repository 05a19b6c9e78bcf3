#pragma once
// Where blocks of queries and of keys lie in memory, and what they see of each other. For *_simd.cpp files alone.

#include "kernels/attention/block.h"
#include "kernels/attention/rows.h"

namespace kf::simd::KF_SIMD_ISA {
namespace {

inline constexpr std::int64_t kRows = AttentionBlocks::kRows, kKeys = AttentionBlocks::kKeys, kTile = AttentionBlocks::kTile;
inline constexpr float kNever = -__builtin_inff();

/// A thread's memory, handed out piece by piece.
struct Memory {
  float* at = nullptr;
  float* take(std::int64_t floats) {
    float* const p = at;
    at += floats;
    return p;
  }
};

template <class T>
const T* row_of(const HeadRows& x, std::int64_t batch, std::int64_t head, std::int64_t row) {
  return static_cast<const T*>(x.data) + batch * x.batch + head * x.head + row * x.row;
}
template <class T>
T* row_to(const HeadRows& x, std::int64_t batch, std::int64_t head, std::int64_t row) {
  return static_cast<T*>(x.data) + batch * x.batch + head * x.head + row * x.row;
}

/// Where the rows of a block are, and which keys they see.
struct Place {
  std::int64_t rows = 0;
  std::int64_t head[kRows], query[kRows];
  std::int32_t first[kRows], end[kRows];  // the keys first .. end - 1
  std::int64_t first_min = 0, first_max = 0, end_min = 0, end_max = 0;

  bool sees(std::int64_t from, std::int64_t to) const { return first_min < to && end_max > from; }
  bool sees_all(std::int64_t from, std::int64_t to) const { return first_max <= from && end_min >= to; }
};

inline Place place_of(const AttentionRows& in, const AttentionBlocks& blocks, std::int64_t batch, std::int64_t kv_head,
                      std::int64_t number) {
  const std::int64_t group = in.heads / in.kv_heads;
  const std::int64_t head = number % blocks.per_span * blocks.heads, query = number / blocks.per_span * blocks.queries;
  const std::int64_t heads = smaller(blocks.heads, group - head), queries = smaller(blocks.queries, in.queries - query);
  Place out;
  out.first_min = out.end_min = in.keys;
  for (std::int64_t h = 0; h < heads; ++h) {
    for (std::int64_t t = query; t < query + queries; ++t) {
      const std::int64_t r = out.rows++;
      const std::int64_t first = in.first != nullptr ? in.first[batch * in.first_batch + t] : 0;
      const std::int64_t end = smaller(in.keys, t + in.ahead + 1);
      out.head[r] = kv_head * group + head + h;
      out.query[r] = t;
      out.first[r] = static_cast<std::int32_t>(first);
      out.end[r] = static_cast<std::int32_t>(end);
      out.first_min = smaller(out.first_min, first);
      out.first_max = larger(out.first_max, first);
      out.end_min = smaller(out.end_min, end);
      out.end_max = larger(out.end_max, end);
    }
  }
  for (std::int64_t r = out.rows; r < kRows; ++r) {
    out.first[r] = out.end[r] = 0;
  }
  return out;
}

template <class T>
void rows_of(const HeadRows& x, std::int64_t batch, const Place& place, const T** rows) {
  for (std::int64_t r = 0; r < place.rows; ++r) {
    rows[r] = row_of<T>(x, batch, place.head[r], place.query[r]);
  }
}

inline float& of_row(float* sums, const AttentionRows& in, std::int64_t batch, const Place& place, std::int64_t r) {
  return sums[(batch * in.heads + place.head[r]) * in.queries + place.query[r]];
}

/// A block of keys that a block of queries sees a part of: rows [low, high) of it, which are whole blocks of products.
struct Part {
  std::int64_t low, high;
  bool edge;  // some queries see less of it
};

inline Part part_of(const Place& place, std::int64_t keys) {
  Part out;
  out.low = larger(0, place.first_min - keys) / 8 * 8;
  out.high = smaller(kKeys, up_to(place.end_max - keys, 8));
  out.edge = !place.sees_all(keys + out.low, keys + out.high);
  return out;
}

/// Products of queries and keys to scores, -inf where nothing is seen: what is left to be done in all other cases is `scale` alone.
inline void prepare(const AttentionRows& in, const Place& place, const Part& part, std::int64_t keys, float* scores) {
  const V scale = splat(in.scale), cap = splat(in.softcap), part_of_cap = splat(in.softcap > 0 ? in.scale / in.softcap : 0);
  for (std::int64_t lane = 0; lane < up_to(place.rows, kLanes); lane += kLanes) {
    I first, end;
    std::memcpy(&first, place.first + lane, sizeof first);
    std::memcpy(&end, place.end + lane, sizeof end);
    for (std::int64_t j = part.low; j < part.high; ++j) {
      float* const at = scores + j * kRows + lane;
      const auto key = static_cast<std::int32_t>(keys + j);
      const V score = in.softcap > 0 ? cap * tanh(load(at) * part_of_cap) : load(at) * scale;
      const I seen = (first <= key) & (end > key);
      store(at, seen ? score : splat(kNever));
    }
  }
}

template <class T>
void put_row(T* to, const float* row, std::int64_t width, float factor) {
  std::int64_t d = 0;
  for (; d + kLanes <= width; d += kLanes) {
    store(to + d, load(row + d) * splat(factor));
  }
  if (d < width) {
    store_first(to + d, load(row + d) * splat(factor), width - d);
  }
}

/// A block of keys, or of values: the rows that there are.
template <class T>
std::int64_t key_rows(const AttentionRows& in, const HeadRows& x, std::int64_t batch, std::int64_t kv_head, std::int64_t keys,
                      const T** rows) {
  const std::int64_t count = smaller(kKeys, in.keys - keys);
  for (std::int64_t j = 0; j < count; ++j) {
    rows[j] = row_of<T>(x, batch, kv_head, keys + j);
  }
  return count;
}

/// Zeros behind the rows of a block that ends early, whose products are computed and not used.
inline void clear_rows(float* x, std::int64_t from, std::int64_t to, std::int64_t ld) {
  std::memset(x + from * ld, 0, static_cast<std::size_t>((to - from) * ld) * sizeof(float));
}

/// Widths in numbers of floats.
template <class Form>
struct Widths {
  std::int64_t keys, values;            // units of q and k, of v
  std::int64_t keys_ld, values_ld;      // the same, in whole vectors
  std::int64_t keys_wide, values_wide;  // in fp32, in whole vectors
  explicit Widths(const AttentionRows& in)
      : keys(up_to(in.width, Form::kPair) / Form::kPair),
        values(up_to(in.value_width, Form::kPair) / Form::kPair),
        keys_ld(up_to(keys, kLanes)),
        values_ld(up_to(values, kLanes)),
        keys_wide(up_to(in.width, kLanes)),
        values_wide(up_to(in.value_width, kLanes)) {}
};

}  // namespace
}  // namespace kf::simd::KF_SIMD_ISA
