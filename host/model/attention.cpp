#include "model/attention.h"

#include <ATen/ATen.h>

namespace kf {
namespace {

/// Repeats every kv head for the query heads that share it: (B, Hkv, T, D) -> (B, Hkv * times, T, D).
at::Tensor repeat_heads(const at::Tensor& x, std::int64_t times) {
  if (times == 1) {
    return x;
  }
  return x.unsqueeze(2).expand({x.size(0), x.size(1), times, x.size(2), x.size(3)}).reshape({x.size(0), -1, x.size(2), x.size(3)});
}

/// Appends the new keys and values and returns all that are filled.
std::pair<at::Tensor, at::Tensor> extend(KvCache& cache, std::int64_t layer, const at::Tensor& k, const at::Tensor& v) {
  KvCache::Layer& kept = cache.layers.at(static_cast<std::size_t>(layer));
  const std::int64_t fresh = k.size(2);
  kept.k.narrow(2, cache.filled, fresh).copy_(k);
  kept.v.narrow(2, cache.filled, fresh).copy_(v);
  return {kept.k.narrow(2, 0, cache.filled + fresh), kept.v.narrow(2, 0, cache.filled + fresh)};
}

}  // namespace

Attention::Attention(const AttentionOptions& o, std::shared_ptr<const Rope> rope) : options_(o), rope_(std::move(rope)) {
  const Init init = Init::normal(o.init_std);
  q_ = add_child("q_proj", std::make_shared<Linear>(o.dim, o.n_heads * o.head_dim, init));
  k_ = add_child("k_proj", std::make_shared<Linear>(o.dim, o.n_kv_heads * o.head_dim, init));
  v_ = add_child("v_proj", std::make_shared<Linear>(o.dim, o.n_kv_heads * o.head_dim, init));
  o_ = add_child("o_proj", std::make_shared<Linear>(o.n_heads * o.head_dim, o.dim, output_init(o.init_std, o.n_layers)));
  if (o.qk_norm) {
    q_norm_ = add_child("q_norm", std::make_shared<RmsNorm>(o.head_dim, o.norm_eps));
    k_norm_ = add_child("k_norm", std::make_shared<RmsNorm>(o.head_dim, o.norm_eps));
  }
}

at::Tensor Attention::heads(const Linear& projection, const Norm* norm, const at::Tensor& x) const {
  at::Tensor split = projection.forward(x).view({x.size(0), x.size(1), -1, options_.head_dim});  // (B, T, H, D)
  if (norm != nullptr) {
    split = norm->forward(split);
  }
  return split.transpose(1, 2);
}

at::Tensor Attention::attend(const at::Tensor& q, at::Tensor k, at::Tensor v, const ForwardContext& context) const {
  const std::int64_t group = options_.n_heads / options_.n_kv_heads;
  std::optional<at::Tensor> mask;
  if (context.mask.defined()) {
    mask = context.mask;
  }
  bool causal = !mask.has_value();
  if (context.cache != nullptr) {
    std::tie(k, v) = extend(*context.cache, options_.layer, k, v);
    const std::int64_t fresh = q.size(2);
    const std::int64_t all = k.size(2);
    causal = fresh == all;
    if (!causal && fresh > 1) {  // several new positions behind old ones: row i sees all old ones and the first i new ones
      mask = at::ones({fresh, all}, q.options().dtype(at::kBool)).tril(all - fresh);
    }
  }
  return at::scaled_dot_product_attention(q, repeat_heads(k, group), repeat_heads(v, group), mask, 0.0, causal);
}

at::Tensor Attention::forward(const at::Tensor& x, const ForwardContext& context) const {
  const std::int64_t first = context.cache != nullptr ? context.cache->filled : 0;
  const at::Tensor q = rope_->rotate(heads(*q_, q_norm_.get(), x), first);
  const at::Tensor k = rope_->rotate(heads(*k_, k_norm_.get(), x), first);
  const at::Tensor v = heads(*v_, nullptr, x);
  const at::Tensor mixed = attend(q, k, v, context);  // (B, H, T, D)
  return o_->forward(mixed.transpose(1, 2).flatten(2));
}

}  // namespace kf
