// Attention's backward by blocks of 32 queries and 64 keys (Dao et al. 2022, FlashAttention, appendix B.2): weights are computed again,
// transposed as in forward.

#include "kernels/attention/places.h"

namespace kf::simd::KF_SIMD_ISA {
namespace {

/// A block of queries: factors of the products with keys, (units of width, rows), and of sums over queries, (units of rows, width).
struct Query {
  Place place;
  float *q_turned, *q_over, *gradient_turned, *gradient_over;
  float* dq;               // (rows, width)
  float *log_sum, *delta;  // (rows)
};

template <class Form, class T>
struct Backward {
  const AttentionBackward& in;
  const AttentionShare& share;
  Widths<Form> widths{in};
  Memory memory;
  float* const k = memory.take(kKeys * widths.keys_ld);            // (keys, units)
  float* const k_over = memory.take(kKeys * widths.keys_wide);     // (units of keys, width)
  float* const v = memory.take(kKeys * widths.values_ld);          // (keys, units)
  float* const scores = memory.take(kKeys * kRows);                // (keys, queries), as all that follow
  float* const inner = memory.take(kKeys * kRows);                 // the gradients of weights
  float* const weights = memory.take(kKeys * kRows);               // units along queries
  float* const score_gradients = memory.take(kKeys * kRows);       // units along queries
  float* const score_gradients_over = memory.take(kKeys * kRows);  // units along keys
  float *dk = nullptr, *dv = nullptr;                              // (keys of the share, width)
  Query queries[kTile] = {};

  void make_room() {
    for (Query& query : queries) {
      query.q_turned = memory.take(widths.keys * kRows);
      query.q_over = memory.take(kRows * widths.keys_wide);
      query.gradient_turned = memory.take(widths.values * kRows);
      query.gradient_over = memory.take(kRows * widths.values_wide);
      query.dq = memory.take(kRows * widths.keys_wide);
      query.log_sum = memory.take(kRows);
      query.delta = memory.take(kRows);
    }
    if (share.keys_too) {
      const std::int64_t rows = (share.keys_end - share.keys) * kKeys;
      dk = memory.take(rows * widths.keys_wide);
      dv = memory.take(rows * widths.values_wide);
      clear_rows(dk, 0, rows, widths.keys_wide);
      clear_rows(dv, 0, rows, widths.values_wide);
    }
  }

  void begin(Query& query, const AttentionBlocks& blocks, std::int64_t number) {
    query.place = place_of(in, blocks, share.batch, share.kv_head, number);
    const std::int64_t count = query.place.rows;
    const T* rows[kRows];
    const auto clear = [&](float* over, std::int64_t ld) {
      clear_rows(over, up_to(count, Form::kPair) / Form::kPair, kRows / Form::kPair, ld);
    };
    rows_of(in.q, share.batch, query.place, rows);
    pack_turned<Form>(rows, count, in.width, query.q_turned, kRows);
    pack_over<Form>(rows, count, in.width, query.q_over, widths.keys_wide);
    clear(query.q_over, widths.keys_wide);
    rows_of(in.gradient, share.batch, query.place, rows);
    pack_turned<Form>(rows, count, in.value_width, query.gradient_turned, kRows);
    pack_over<Form>(rows, count, in.value_width, query.gradient_over, widths.values_wide);
    clear(query.gradient_over, widths.values_wide);
    clear_rows(query.dq, 0, kRows, widths.keys_wide);
    for (std::int64_t r = 0; r < kRows; ++r) {
      const float log_sum = r < count ? of_row(in.log_sum, in, share.batch, query.place, r) : 0;
      query.log_sum[r] = log_sum == kNever ? 0 : log_sum;  // a query that sees nothing has weights exp(-inf) of any other number, too
      query.delta[r] = r < count ? of_row(in.delta, in, share.batch, query.place, r) : 0;
    }
  }

  void load_keys(std::int64_t keys) {
    const T* rows[kKeys];
    std::int64_t count = key_rows(in, in.k, share.batch, share.kv_head, keys, rows);
    pack_along<Form>(rows, count, in.width, k, widths.keys_ld);
    clear_rows(k, count, kKeys, widths.keys_ld);
    if (share.queries_too) {
      pack_over<Form>(rows, count, in.width, k_over, widths.keys_wide);
      clear_rows(k_over, up_to(count, Form::kPair) / Form::kPair, kKeys / Form::kPair, widths.keys_wide);
    }
    count = key_rows(in, in.v, share.batch, share.kv_head, keys, rows);
    pack_along<Form>(rows, count, in.value_width, v, widths.values_ld);
    clear_rows(v, count, kKeys, widths.values_ld);
  }

  /// Weights from scores times `factor`, and the gradients of products of queries and keys from those of weights.
  void differentiate(const Query& query, const Part& part, float factor) {
    const V scale = splat(factor), slope = splat(in.scale), per_cap = splat(in.softcap > 0 ? 1 / in.softcap : 0);
    for (std::int64_t lane = 0; lane < up_to(query.place.rows, kLanes); lane += kLanes) {
      const V log_sum = load(query.log_sum + lane), delta = load(query.delta + lane);
      const auto of = [&](std::int64_t j) {
        const std::int64_t at = j * kRows + lane;
        const V score = load(scores + at);
        const V weight = exp(min(V{}, rounded(score * scale) - log_sum));  // as forward rounds: of huge scores no more is known
        V gradient = weight * (load(inner + at) - delta) * slope;
        if (in.softcap > 0) {
          const V share_of_cap = score * per_cap;
          gradient = weight == V{} ? V{} : gradient * (splat(1.0F) - share_of_cap * share_of_cap);
        }
        Form::put_along(weights, kRows / Form::kPair, j, lane, weight);
        if constexpr (Form::kPair > 1) {
          Form::put_along(score_gradients, kRows / Form::kPair, j, lane, gradient);
        }
        return gradient;
      };
      for (std::int64_t j = part.low; j < part.high; j += 2) {
        const V first = of(j), second = of(j + 1);
        Form::put_over(score_gradients_over, kRows, j, lane, first, second);
      }
    }
  }

  void add(const Query& query, std::int64_t keys) {
    const Part part = part_of(query.place, keys);
    const std::int64_t count = part.high - part.low, rows = up_to(query.place.rows, kLanes);
    product<Form, Order::along>(k + part.low * widths.keys_ld, widths.keys_ld, query.q_turned, kRows, scores + part.low * kRows, kRows,
                                count, rows, widths.keys, false);
    product<Form, Order::along>(v + part.low * widths.values_ld, widths.values_ld, query.gradient_turned, kRows, inner + part.low * kRows,
                                kRows, count, rows, widths.values, false);
    const bool prepared = part.edge || in.softcap > 0;
    if (prepared) {
      prepare(in, query.place, part, keys, scores);
    }
    differentiate(query, part, prepared ? 1 : in.scale);
    if (share.queries_too) {
      const std::int64_t first = part.low / Form::kPair;
      product<Form, Order::over>(score_gradients_over + first * kRows, kRows, k_over + first * widths.keys_wide, widths.keys_wide, query.dq,
                                 widths.keys_wide, query.place.rows, widths.keys_wide, count / Form::kPair, true);
    }
    if (share.keys_too) {
      constexpr std::int64_t kLd = kRows / Form::kPair;
      const std::int64_t first = keys - share.keys * kKeys + part.low, units = up_to(query.place.rows, Form::kPair) / Form::kPair;
      const float* const inside = Form::kPair > 1 ? score_gradients : score_gradients_over;
      product<Form, Order::along>(weights + part.low * kLd, kLd, query.gradient_over, widths.values_wide, dv + first * widths.values_wide,
                                  widths.values_wide, count, widths.values_wide, units, true);
      product<Form, Order::along>(inside + part.low * kLd, kLd, query.q_over, widths.keys_wide, dk + first * widths.keys_wide,
                                  widths.keys_wide, count, widths.keys_wide, units, true);
    }
  }

  void finish_queries(const Query& query) {
    for (std::int64_t r = 0; r < query.place.rows; ++r) {
      put_row(row_to<T>(in.dq, share.batch, query.place.head[r], query.place.query[r]), query.dq + r * widths.keys_wide, in.width, 1);
    }
  }

  void finish_keys() {
    const std::int64_t begin = share.keys * kKeys, end = smaller(in.keys, share.keys_end * kKeys);
    for (std::int64_t j = begin; j < end; ++j) {
      put_row(row_to<T>(in.dk, share.batch, share.kv_head, j), dk + (j - begin) * widths.keys_wide, in.width, 1);
      put_row(row_to<T>(in.dv, share.batch, share.kv_head, j), dv + (j - begin) * widths.values_wide, in.value_width, 1);
    }
  }

  void run_tile(const AttentionBlocks& blocks, std::int64_t tile) {
    const std::int64_t begin_block = tile * kTile, count = smaller(kTile, blocks.number - begin_block);
    std::int64_t low = in.keys, high = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      queries[i].place = place_of(in, blocks, share.batch, share.kv_head, begin_block + i);
      low = smaller(low, queries[i].place.first_min);
      high = larger(high, queries[i].place.end_max);
    }
    low = larger(low / kKeys, share.keys) * kKeys;
    high = smaller(high, share.keys_end * kKeys);
    for (std::int64_t i = 0; i < count && (low < high || share.queries_too); ++i) {
      begin(queries[i], blocks, begin_block + i);
    }
    for (std::int64_t keys = low; keys < high; keys += kKeys) {
      load_keys(keys);
      for (std::int64_t i = 0; i < count; ++i) {
        if (queries[i].place.sees(keys, keys + kKeys)) {
          add(queries[i], keys);
        }
      }
    }
    for (std::int64_t i = 0; i < count && share.queries_too; ++i) {
      finish_queries(queries[i]);
    }
  }

  void run() {
    const AttentionBlocks blocks(in);
    make_room();
    for (std::int64_t tile = share.tile; tile < share.tile_end; ++tile) {
      run_tile(blocks, tile);
    }
    if (share.keys_too) {
      finish_keys();
    }
  }
};

template <class T>
void deltas(const AttentionBackward& in, std::int64_t batch, std::int64_t head) {
  for (std::int64_t t = 0; t < in.queries; ++t) {
    const T *a = row_of<T>(in.gradient, batch, head, t), *b = row_of<T>(in.out, batch, head, t);
    V all{};
    std::int64_t d = 0;
    for (; d + kLanes <= in.value_width; d += kLanes) {
      all = fma(load(a + d), load(b + d), all);
    }
    if (d < in.value_width) {
      all = fma(load_first(a + d, in.value_width - d), load_first(b + d, in.value_width - d), all);
    }
    in.delta[(batch * in.heads + head) * in.queries + t] = sum(all);
  }
}

}  // namespace

void attention_delta(const AttentionBackward& in, std::int64_t batch, std::int64_t head) {
  in.bf16 ? deltas<Bf16>(in, batch, head) : deltas<float>(in, batch, head);
}

void attention_backward(const AttentionBackward& in, const AttentionShare& share, float* scratch) {
#ifdef __AVX512BF16__
  if (in.bf16) {
    Backward<Pairs, Bf16>{in, share, Widths<Pairs>(in), {scratch}}.run();
    return;
  }
#endif
  if (in.bf16) {
    Backward<Wide, Bf16>{in, share, Widths<Wide>(in), {scratch}}.run();
  } else {
    Backward<Wide, float>{in, share, Widths<Wide>(in), {scratch}}.run();
  }
}

}  // namespace kf::simd::KF_SIMD_ISA
