#pragma once
// How positions exchange information: the interface of self-attention.

#include <ATen/core/Tensor.h>

#include "model/model.h"

namespace kf {

class Rope;

/// The first half of a block. Causal, inside a document; native kinds are gqa (grouped_attention.h) and mla (latent_attention.h).
class Attention : public Module {
 public:
  bool observable() const override { return true; }
  /// (B, T, C) -> (B, T, C). `context.visible` says who sees whom; with `context.cache` the T positions come after `cache->filled` others.
  virtual at::Tensor forward(const at::Tensor& x, const ForwardContext& context) const = 0;
  /// Multiplies the query weights by `factors` (H), one a query head: the masters move, the caller publishes. The default refuses: QK-clip
  /// needs an attention that overrides it.
  virtual void scale_queries(const at::Tensor& factors) const;
  /// An empty cache of this layer for `batch` rows of `capacity` positions, in the type and on the device of `like`. The default refuses:
  /// generation then goes over the whole text for each token.
  virtual KvCache::Layer make_cache(std::int64_t batch, std::int64_t capacity, const at::Tensor& like) const;
  /// Whether `make_cache` gives one.
  virtual bool has_cache() const { return false; }
  /// Whether rows behind padding (Visibility with starts) give what they give alone.
  virtual bool takes_padding() const { return false; }
  /// See Model::keeps_cache.
  virtual bool keeps_cache(std::int64_t /*length*/, std::int64_t /*longer*/) const { return true; }
};

/// x (B, H, T, D) of this forward, turned by `rope`; null leaves it as it is. Texts of several lengths in one batch are turned as each is
/// alone. `absolute` counts positions from the beginning of a document (for what does not depend on differences alone).
at::Tensor rotated(const Rope* rope, const at::Tensor& x, const ForwardContext& context, bool absolute = false);

/// Writes the positions after `filled` and returns all that are there: (B, H, fresh, D) -> (B, H, filled + fresh, D).
at::Tensor append(const at::Tensor& kept, std::int64_t filled, const at::Tensor& fresh);

}  // namespace kf
