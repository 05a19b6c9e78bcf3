#include "kernels/attention/rows.h"

#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <atomic>

#include "kernels/simd/threads.h"

namespace kf {
namespace {

std::int64_t shares(std::int64_t n, std::int64_t size) { return (n + size - 1) / size; }

std::int64_t whole_vectors(std::int64_t width) { return shares(width, 32) * 32; }  // of any width, and of pairs

/// A thread's memory of forward and backward, whose blocks lie in forward_simd.cpp and backward_simd.cpp.
std::int64_t forward_scratch(const AttentionRows& in) {
  using B = AttentionBlocks;
  const std::int64_t widths = whole_vectors(in.width) + whole_vectors(in.value_width);
  return B::kKeys * (widths + 2 * B::kRows) + B::kTile * B::kRows * (widths + 2);
}
std::int64_t backward_scratch(const AttentionRows& in) {
  using B = AttentionBlocks;
  const std::int64_t width = whole_vectors(in.width), value_width = whole_vectors(in.value_width);
  return B::kKeys * (2 * width + value_width + 5 * B::kRows) + B::kTile * B::kRows * (3 * width + 2 * value_width + 2);
}

/// body(unit, the thread's own memory) for 0 .. count - 1 in this order, by whichever thread is free: a busy neighbour of one of them, or
/// a unit that is shorter than others, costs nothing but its own time.
template <class Body>
void each(const AttentionRows& in, std::int64_t count, std::int64_t scratch, const Body& body) {
  constexpr std::int64_t kGrain = std::int64_t{1} << 20;  // multiplications that are worth a thread
  const std::int64_t work = in.batches * in.heads * in.queries * in.keys * (in.width + in.value_width);
  const std::int64_t threads = std::min({count, shares(work, kGrain), std::int64_t{simd::threads()}});
  const std::int64_t size = shares(scratch, 16) * 16;  // whole lines of a cache
  const c10::DataPtr memory = c10::GetCPUAllocator()->allocate(static_cast<std::size_t>(threads * size) * sizeof(float));
  std::atomic<std::int64_t> next = 0;
  simd::share(threads, 1, [&](std::int64_t first, std::int64_t end, int /*thread*/) {
    for (std::int64_t thread = first; thread < end; ++thread) {
      for (std::int64_t unit = next++; unit < count; unit = next++) {
        body(unit, static_cast<float*>(memory.get()) + thread * size);
      }
    }
  });
}

/// Blocks of keys of which a thread computes the gradients alone.
constexpr std::int64_t kKeyShare = 4;
/// Floats in which a thread may sum the gradients of all keys of a head.
constexpr std::int64_t kMostSums = 8 << 20;

}  // namespace

AttentionBlocks::AttentionBlocks(const AttentionRows& in) {
  const std::int64_t group = in.heads / in.kv_heads;
  queries = std::min(kRows, in.queries);
  heads = std::min(group, kRows / queries);
  per_span = shares(group, heads);
  number = per_span * shares(in.queries, queries);
  tiles = shares(number, kTile);
  keys = shares(in.keys, kKeys);
}

void attention_forward(const AttentionForward& in) {
  const auto run = KF_SIMD_PICK(attention_forward);
  const std::int64_t heads = in.batches * in.kv_heads, tiles = AttentionBlocks(in).tiles;
  each(in, heads * tiles, forward_scratch(in), [&](std::int64_t unit, float* scratch) {
    const std::int64_t tile = tiles - 1 - unit / heads, head = unit % heads;  // the last ones see most and come first
    run(in, head / in.kv_heads, head % in.kv_heads, tile, scratch);
  });
}

void attention_backward(const AttentionBackward& in) {
  if (in.out.data != nullptr) {
    const auto run = KF_SIMD_PICK(attention_delta);
    simd::share(in.batches * in.heads, shares(1 << 14, in.queries * in.value_width), [&](std::int64_t first, std::int64_t end, int) {
      for (std::int64_t i = first; i < end; ++i) {
        run(in, i / in.heads, i % in.heads);
      }
    });
  }
  const auto run = KF_SIMD_PICK(attention_backward);
  const std::int64_t heads = in.batches * in.kv_heads, threads = simd::threads();
  const AttentionBlocks blocks(in);
  const std::int64_t floats = AttentionBlocks::kKeys * (whole_vectors(in.width) + whole_vectors(in.value_width));  // of a block's sums
  const auto share_of = [&](std::int64_t head) {
    return AttentionShare{head / in.kv_heads, head % in.kv_heads, 0, blocks.tiles, 0, blocks.keys, true, true};
  };
  // At once there are five products, and one after the other seven; but then there is something to do for more threads than heads.
  const bool at_once = shares(heads, threads) * threads * 5 <= heads * 7 || blocks.tiles == 1;
  if (at_once && blocks.keys * floats <= kMostSums) {
    each(in, heads, backward_scratch(in) + blocks.keys * floats,
         [&](std::int64_t head, float* scratch) { run(in, share_of(head), scratch); });
    return;
  }
  const std::int64_t of_keys = heads * shares(blocks.keys, kKeyShare);
  each(in, of_keys + heads * blocks.tiles, backward_scratch(in) + kKeyShare * floats, [&](std::int64_t unit, float* scratch) {
    AttentionShare share = share_of(unit % heads);
    if (unit < of_keys) {
      share.keys = unit / heads * kKeyShare;  // the first ones are seen by most
      share.keys_end = std::min(blocks.keys, share.keys + kKeyShare);
      share.queries_too = false;
    } else {
      share.tile = blocks.tiles - 1 - (unit - of_keys) / heads;
      share.tile_end = share.tile + 1;
      share.keys_too = false;
    }
    run(in, share, scratch);
  });
}

}  // namespace kf
