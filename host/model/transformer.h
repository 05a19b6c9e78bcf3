#pragma once
// The decoder-only transformer with pre-norm blocks (Llama): h += attention(norm(h)); h += mlp(norm(h)).

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "model/attention.h"
#include "model/mlp.h"
#include "model/model.h"
#include "model/norm.h"

namespace kf {

struct PartArgs;

class Block final : public Module {
 public:
  Block(std::shared_ptr<Norm> attention_norm, std::shared_ptr<Attention> attention, std::shared_ptr<Norm> mlp_norm,
        std::shared_ptr<Mlp> mlp);
  at::Tensor forward(const at::Tensor& x, const ForwardContext& context) const;  // (B, T, C) -> (B, T, C)

 private:
  std::shared_ptr<Norm> attention_norm_;
  std::shared_ptr<Attention> attention_;
  std::shared_ptr<Norm> mlp_norm_;
  std::shared_ptr<Mlp> mlp_;
};

class Transformer final : public Model {
 public:
  explicit Transformer(const PartArgs& args);
  at::Tensor forward(const at::Tensor& tokens, ForwardContext& context) override;
  KvCache make_cache(std::int64_t batch, std::int64_t capacity) override;

 private:
  ParameterPtr embedding_;  // (V, C)
  std::vector<std::shared_ptr<Block>> blocks_;
  std::shared_ptr<Norm> norm_;
  std::shared_ptr<Linear> head_;  // (V, C), the embedding itself when tied
  std::int64_t n_kv_heads_ = 0;
  std::int64_t head_dim_ = 0;
  std::int64_t max_seq_len_ = 0;
};

/// Attention stays causal and inside a document: (B, T) ids -> (B, 1, T, T) bool, true = may attend.
at::Tensor document_mask(const at::Tensor& doc_ids);

}  // namespace kf
