#pragma once
// What goes into a forward beside its tokens, and what comes out of it beside its result.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace kf {

class MoeLayer;
class Visibility;

/// What attention keeps of the tokens seen so far, one entry a layer; for generation.
struct KvCache {
  struct Layer {
    at::Tensor k, v;  // gqa: (B, Hkv, capacity, D); mla: the latent (B, 1, capacity, r) and the rotated key (B, 1, capacity, D)
  };
  std::vector<Layer> layers;
  std::int64_t filled = 0;  // positions that hold something
  std::int64_t capacity = 0;
  at::Tensor starts;  // (B) int64: the first position of each row that is no padding; undefined where there is none
};

/// What a layer of experts did in a forward. The losses carry gradients beside the forward's result.
struct ExpertsRecord {
  const MoeLayer* layer = nullptr;
  at::Tensor experts;         // (N, k) int64
  at::Tensor weights;         // (N, k) before dropping
  at::Tensor kept;            // (N, k) after it
  at::Tensor counts;          // (E) int64 assignments before dropping; training only
  at::Tensor balance;         // 0-dim, Routing::balance
  at::Tensor mean_scores;     // (E), Routing::mean_scores
  double balance_factor = 0;  // of Routing
  at::Tensor z;               // 0-dim
  at::Tensor extra;           // 0-dim, Routing::extra
};

/// What layers leave in a forward. It belongs to who runs the forward, so forwards of any number of micro-batches may be in flight.
struct ForwardResults {
  std::vector<ExpertsRecord> experts;  // of each layer of experts, in the order in which they ran
  /// With ForwardContext::looks_ahead: what the head makes the logits of model.mtp_layers from, (B, T, C) a depth. Position i of depth k
  /// (from 0) speaks of the token after i + k + 1. Positions whose token i + k + 1 is beyond the row or in another document hold nothing.
  std::vector<at::Tensor> ahead;
  /// With ForwardContext::tracks_scores: the largest score (before the softmax, masked ones left out) of each query head, one (H) a layer.
  std::vector<at::Tensor> largest_scores;

  /// Keeps the larger ones; undefined for none.
  void note_largest(std::size_t layer, const at::Tensor& scores);
  /// The tensors of `experts` that carry gradients; those that are there.
  std::vector<at::Tensor*> losses();
  /// What a piece of this forward has left.
  void take(ForwardResults&& piece);
};

/// The update and micro-batch that a model is in: what dropout inside of layers that see no ForwardContext draws from.
struct Moment {
  std::int64_t step = 0;
  std::int64_t micro = 0;
};

/// What travels beside the hidden state through the blocks.
struct ForwardContext {
  at::Tensor doc_ids;                         // (B, T) int64, undefined for one document a row: attention stays inside a document
  at::Tensor lengths;                         // (B) int64, undefined where rows are full: what follows in row b is padding on the right
  std::shared_ptr<const Visibility> visible;  // who sees whom, made from doc_ids, lengths and cache once a forward
  KvCache* cache = nullptr;                   // generation only
  std::int64_t step = 0;                      // the update and its micro-batch, from 0: what dropout draws from
  std::int64_t micro = 0;
  std::shared_ptr<Moment> moment;     // the model's, in training: is set to `step` and `micro` before anything runs, again in backward too
  at::Tensor positions;               // (T) int64: where the tokens of a cp rank stand in their sequence; undefined for 0, 1, ..., T - 1
  bool split_sequence = false;        // between layers, each tp rank has its rows of T alone: even_rows(T, tp)
  bool looks_ahead = false;           // whether ForwardResults::ahead is wanted,
  bool tracks_scores = false;         // and ForwardResults::largest_scores
  ForwardResults* results = nullptr;  // where layers leave what is no part of the result; null where nobody asks
  /// Called with a name and the activation where set: "embed", "layer.0", ..., "norm". For parity tests and activation capture.
  std::function<void(const std::string&, const at::Tensor&)> observe;
};

}  // namespace kf
