// Attention's forward by blocks of 32 queries and 64 keys. Scores are kept transposed, (keys, queries): sums and maxima of the softmax are
// then over rows of vectors, and keys and values are factors of the products as they lie in memory.

#include "kernels/attention/places.h"

namespace kf::simd::KF_SIMD_ISA {
namespace {

/// A block of queries on its way through the keys: the online softmax (Milakov and Gimelshein 2018).
struct Query {
  Place place;
  float *turned, *out;   // (units of width, rows), (rows, value width)
  float *largest, *sum;  // (rows): of scores, and of exp(scores - largest)
};

/// Scores times `factor` become weights exp(score - largest), and the sums are of these: `shrink` (rows) is what was before in units of it.
/// Whether any is not 1.
template <class Form>
bool weigh(const Query& query, const Part& part, float factor, const float* scores, float* weights, float* shrink) {
  const V scale = splat(factor);
  I changed{};
  for (std::int64_t lane = 0; lane < up_to(query.place.rows, kLanes); lane += kLanes) {
    V even = splat(kNever), odd = even;
    for (std::int64_t j = part.low; j < part.high; j += 2) {
      even = max(load(scores + j * kRows + lane), even);
      odd = max(load(scores + (j + 1) * kRows + lane), odd);
    }
    const V before = load(query.largest + lane), now = max(before, rounded(max(even, odd) * scale));  // `rounded` as they are below
    const V base = now == splat(kNever) ? V{} : now;
    const V less = exp(before - base);
    V sum = load(query.sum + lane) * less;
    for (std::int64_t j = part.low; j < part.high; j += 2) {
      const V first = exp(rounded(load(scores + j * kRows + lane) * scale) - base);
      const V second = exp(rounded(load(scores + (j + 1) * kRows + lane) * scale) - base);
      sum += first + second;
      Form::put_over(weights, kRows, j, lane, first, second);
    }
    store(query.largest + lane, now);
    store(query.sum + lane, sum);
    store(shrink + lane, less);
    changed |= less != splat(1.0F);
  }
  return any(changed);
}

/// Rows times a factor each.
void scale_rows(float* x, std::int64_t rows, std::int64_t width, const float* factors) {
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t d = 0; d < width; d += kLanes) {
      store(x + r * width + d, load(x + r * width + d) * splat(factors[r]));
    }
  }
}

template <class Form, class T>
struct Forward {
  const AttentionForward& in;
  std::int64_t batch, kv_head;
  Widths<Form> widths{in};
  Memory memory;
  float* const k = memory.take(kKeys * widths.keys_ld);      // (keys, units)
  float* const v = memory.take(kKeys * widths.values_wide);  // (units of keys, width)
  float* const scores = memory.take(kKeys * kRows);
  float* const weights = memory.take(kKeys * kRows);

  Query begin(const AttentionBlocks& blocks, std::int64_t number) {
    Query query{place_of(in, blocks, batch, kv_head, number), memory.take(widths.keys * kRows), memory.take(kRows * widths.values_wide),
                memory.take(kRows), memory.take(kRows)};
    const T* rows[kRows];
    rows_of(in.q, batch, query.place, rows);
    pack_turned<Form>(rows, query.place.rows, in.width, query.turned, kRows);
    clear_rows(query.out, 0, kRows, widths.values_wide);
    for (std::int64_t r = 0; r < kRows; ++r) {
      const bool sink = in.sinks != nullptr && r < query.place.rows;
      query.largest[r] = sink ? in.sinks[query.place.head[r]] : kNever;  // as a key whose value is 0
      query.sum[r] = sink ? 1 : 0;
    }
    return query;
  }

  void load_keys(std::int64_t keys) {
    const T* rows[kKeys];
    std::int64_t count = key_rows(in, in.k, batch, kv_head, keys, rows);
    pack_along<Form>(rows, count, in.width, k, widths.keys_ld);
    clear_rows(k, count, kKeys, widths.keys_ld);
    count = key_rows(in, in.v, batch, kv_head, keys, rows);
    pack_over<Form>(rows, count, in.value_width, v, widths.values_wide);
    clear_rows(v, up_to(count, Form::kPair) / Form::kPair, kKeys / Form::kPair, widths.values_wide);
  }

  void add(Query& query, std::int64_t keys) {
    const Part part = part_of(query.place, keys);
    const std::int64_t rows = up_to(query.place.rows, 8), first = part.low / Form::kPair;
    product<Form, Order::along>(k + part.low * widths.keys_ld, widths.keys_ld, query.turned, kRows, scores + part.low * kRows, kRows,
                                part.high - part.low, up_to(query.place.rows, kLanes), widths.keys, false);
    const bool prepared = part.edge || in.softcap > 0;
    if (prepared) {
      prepare(in, query.place, part, keys, scores);
    }
    float shrink[kRows];
    if (weigh<Form>(query, part, prepared ? 1 : in.scale, scores, weights, shrink)) {
      scale_rows(query.out, query.place.rows, widths.values_wide, shrink);
    }
    product<Form, Order::over>(weights + first * kRows, kRows, v + first * widths.values_wide, widths.values_wide, query.out,
                               widths.values_wide, rows, widths.values_wide, (part.high - part.low) / Form::kPair, true);
  }

  void finish(const Query& query) {
    for (std::int64_t lane = 0; lane < kRows; lane += kLanes) {
      const V sum = load(query.sum + lane);
      store(query.largest + lane, sum == V{} ? splat(kNever) : load(query.largest + lane) + log(sum));
      store(query.sum + lane, sum == V{} ? V{} : splat(1.0F) / sum);
    }
    for (std::int64_t r = 0; r < query.place.rows; ++r) {
      of_row(in.log_sum, in, batch, query.place, r) = query.largest[r];
      put_row(row_to<T>(in.out, batch, query.place.head[r], query.place.query[r]), query.out + r * widths.values_wide, in.value_width,
              query.sum[r]);
    }
  }

  void run(const AttentionBlocks& blocks, std::int64_t tile) {
    Query queries[kTile];
    const std::int64_t begin_block = tile * kTile, count = smaller(kTile, blocks.number - begin_block);
    std::int64_t low = in.keys, high = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      queries[i] = begin(blocks, begin_block + i);
      low = smaller(low, queries[i].place.first_min);
      high = larger(high, queries[i].place.end_max);
    }
    for (std::int64_t keys = low / kKeys * kKeys; keys < high; keys += kKeys) {
      load_keys(keys);
      for (std::int64_t i = 0; i < count; ++i) {
        if (queries[i].place.sees(keys, keys + kKeys)) {
          add(queries[i], keys);
        }
      }
    }
    for (std::int64_t i = 0; i < count; ++i) {
      finish(queries[i]);
    }
  }
};

}  // namespace

void attention_forward(const AttentionForward& in, std::int64_t batch, std::int64_t kv_head, std::int64_t tile, float* scratch) {
  const AttentionBlocks blocks(in);
#ifdef __AVX512BF16__
  if (in.bf16) {
    Forward<Pairs, Bf16>{in, batch, kv_head, Widths<Pairs>(in), {scratch}}.run(blocks, tile);
    return;
  }
#endif
  if (in.bf16) {
    Forward<Wide, Bf16>{in, batch, kv_head, Widths<Wide>(in), {scratch}}.run(blocks, tile);
  } else {
    Forward<Wide, float>{in, batch, kv_head, Widths<Wide>(in), {scratch}}.run(blocks, tile);
  }
}

}  // namespace kf::simd::KF_SIMD_ISA
