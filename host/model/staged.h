#pragma once
// What a model must be able to do for a pipeline: to run a piece of itself.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "model/forward.h"
#include "model/module.h"

namespace kf {

class Group;

/// Consecutive layers [first, end) of a model; whether it makes hidden states of tokens, and logits of hidden states. (As config::Stage,
/// which is cut by cost.)
struct Piece {
  std::int64_t first = 0;
  std::int64_t end = 0;
  bool embeds = true;
  bool heads = true;
};

/// A model whose layers can run on several ranks. It is built whole on each of them; of the weights that no piece of a rank reads, that
/// rank holds nothing.
class Staged {
 public:
  virtual ~Staged() = default;
  /// The layers of `piece`. `in`: hidden states as they lie between pieces, or the tokens where the piece embeds; `tokens` (B, T) in any
  /// case. Gives hidden states: as between pieces, or, where the piece has the head, (B, T, C) behind the last norm.
  virtual at::Tensor run_piece(const Piece& piece, const at::Tensor& in, const at::Tensor& tokens, ForwardContext& context) = 0;
  /// Between pieces a hidden state is (B, S, C): S of T = `length` positions lie on this rank. `cached`: in a forward with a cache.
  virtual std::int64_t positions_between(std::int64_t length, bool cached) const = 0;
  /// The weights that it reads. Several pieces may read one (tied embeddings).
  virtual ParameterList weights_of(const Piece& piece) const = 0;
  /// Its blocks, by which weights are gathered and reduced.
  virtual std::vector<std::shared_ptr<Module>> blocks_of(const Piece& piece) const = 0;
  /// An empty cache for the layers of these pieces, each under its number in the whole model.
  virtual KvCache cache_of(const std::vector<Piece>& pieces, std::int64_t batch, std::int64_t capacity) = 0;
};

/// A matrix of the type in which hidden states travel; the first weight where there is none.
const Parameter& like_hidden(const ParameterList& weights);

/// A StepBook that can add up what the ranks of a pipeline have counted, each of other layers.
class JoinsStages {
 public:
  virtual ~JoinsStages() = default;
  /// From now on at the end of each step.
  virtual void join_over(Group& pipeline) = 0;
};

}  // namespace kf
