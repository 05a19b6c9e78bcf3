#pragma once
// Multi-token prediction: extra layers that look further ahead than the next token, in training only (DeepSeek V3, section 2.2).

#include <ATen/core/Tensor.h>

#include <memory>

#include "model/layer/linear.h"
#include "model/layer/norm.h"
#include "model/layer/place.h"
#include "model/model.h"
#include "model/transformer/block.h"

namespace kf {

struct PartArgs;
struct Place;

/// One depth: h_k = block(W [norm(e); norm(h_{k-1})]), where e embeds the token k further on. Embedding, final norm and head are the
/// model's.
class MtpLayer final : public Module {
 public:
  /// `place` is that of the last block, whose kind this one has.
  MtpLayer(const PartArgs& args, const Place& place);
  /// h and ahead (B, T, C) -> (B, T, C)
  at::Tensor forward(const at::Tensor& h, const at::Tensor& ahead, const ForwardContext& context) const;

 private:
  std::shared_ptr<Norm> embed_norm_, hidden_norm_;
  std::shared_ptr<Linear> proj_;  // (C, 2 C)
  std::shared_ptr<Block> block_;
};

/// tokens (B, T) moved k places to the left; the last k, which nobody knows, are 0 and must not count.
at::Tensor tokens_ahead(const at::Tensor& tokens, std::int64_t k);

}  // namespace kf
