#pragma once
// Attention on a CPU by rows of plain memory: what fused.cpp and partial.cpp give to the kernels of rows_simd.cpp.

#include <cstdint>

#include "kernels/simd/isa.h"

namespace kf {

/// (B, H, rows, width) in memory of fp32 or bf16. Numbers of a row are neighbours, and the other strides are any, counted in numbers.
struct HeadRows {
  void* data = nullptr;
  std::int64_t batch = 0, head = 0, row = 0;
};

/// Query head h reads kv head h / (heads / kv_heads). Query t sees the keys first[t] .. min(keys, t + ahead + 1) - 1: one range.
struct AttentionRows {
  HeadRows q, k, v;  // (B, heads, queries, width), (B, kv_heads, keys, width), (B, kv_heads, keys, value_width)
  bool bf16 = false;
  std::int64_t batches = 0, heads = 0, kv_heads = 0, queries = 0, keys = 0, width = 0, value_width = 0;
  const std::int64_t* first = nullptr;  // (B or 1, queries); null: 0
  std::int64_t first_batch = 0;         // its stride
  std::int64_t ahead = 0;
  float scale = 1;
  float softcap = 0;         // c > 0: scores become c tanh(scores / c)
  float* log_sum = nullptr;  // (B, heads, queries) of exp(scores), -inf where a query sees nothing: of forward a result, else given
};

struct AttentionForward : AttentionRows {
  const float* sinks = nullptr;  // (heads); null for none
  HeadRows out;                  // (B, heads, queries, value_width); 0 where a query sees nothing
};

struct AttentionBackward : AttentionRows {
  HeadRows gradient, out;  // (B, heads, queries, value_width)
  float* delta = nullptr;  // (B, heads, queries): the sums of gradient * out
  HeadRows dq, dk, dv;     // as q, k, v
};

/// Queries are computed with in blocks of 32 rows (of one head, or of several where there are few queries), and those in tiles; keys in
/// blocks of 64. Scores exist for one block of queries and one of keys at a time.
struct AttentionBlocks {
  static constexpr std::int64_t kRows = 32, kKeys = 64, kTile = 4;

  std::int64_t queries;   // of a head in a block
  std::int64_t heads;     // of a block
  std::int64_t per_span;  // blocks for the heads of a group at the same queries
  std::int64_t number;    // of blocks of the rows that share a kv head
  std::int64_t tiles;     // of those
  std::int64_t keys;      // blocks of keys

  explicit AttentionBlocks(const AttentionRows& in);
};

/// Of a backward: which tiles of queries and blocks of keys, and whose gradients. Gradients of keys take all tiles, those of queries all
/// blocks of keys; however the work is cut, sums are added in the same order.
struct AttentionShare {
  std::int64_t batch = 0, kv_head = 0;
  std::int64_t tile = 0, tile_end = 0;
  std::int64_t keys = 0, keys_end = 0;
  bool queries_too = true, keys_too = true;
};

/// On LibTorch's threads; the same bits for any number of them.
void attention_forward(const AttentionForward& in);
/// Computes delta, too, where there is `out`.
void attention_backward(const AttentionBackward& in);

}  // namespace kf

// Of one batch, head and so on each. `scratch` is of one thread.
KF_SIMD_DECLARE(void attention_forward(const AttentionForward& in, std::int64_t batch, std::int64_t kv_head, std::int64_t tile,
                                       float* scratch))
KF_SIMD_DECLARE(void attention_delta(const AttentionBackward& in, std::int64_t batch, std::int64_t head))
KF_SIMD_DECLARE(void attention_backward(const AttentionBackward& in, const AttentionShare& share, float* scratch))
