#pragma once
// The decoder-only transformer: embedding, blocks, norm, head.

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "config/plan/stages.h"
#include "model/layer/dropout.h"
#include "model/layer/linear.h"
#include "model/layer/norm.h"
#include "model/layer/tensor_ranks.h"
#include "model/model.h"
#include "model/moe/moe_book.h"
#include "model/staged.h"
#include "model/transformer/block.h"
#include "model/transformer/mtp.h"

namespace kf {

struct PartArgs;

class Transformer final : public Model, public Staged {
 public:
  explicit Transformer(const PartArgs& args);
  /// The layers of a stage, under the names that they have in the whole model. It takes hidden states (B, T, C) where it does not embed,
  /// and gives them (before the last norm) where it has no head. Throws Code::config for a piece of a model with model.mtp_layers.
  Transformer(const PartArgs& args, const config::Stage& stage);
  at::Tensor forward(const at::Tensor& in, ForwardContext& context) override;
  at::Tensor project(const at::Tensor& hidden) const override { return logits(hidden); }
  std::vector<std::shared_ptr<Module>> unit_modules() const override { return {blocks_.begin(), blocks_.end()}; }
  StepBook* book() override { return experts_.get(); }
  at::Tensor hidden(const at::Tensor& in, ForwardContext& context) override;
  std::optional<OutputHead> head() override;
  void scale_queries(std::int64_t layer, const at::Tensor& factors) override;
  KvCache make_cache(std::int64_t batch, std::int64_t capacity) override;
  bool has_cache() const override;
  bool takes_padding() const override;
  bool keeps_cache(std::int64_t length, std::int64_t longer) const override;

  at::Tensor run_piece(const Piece& piece, const at::Tensor& in, const at::Tensor& tokens, ForwardContext& context) override;
  std::int64_t positions_between(std::int64_t length, bool cached) const override;
  ParameterList weights_of(const Piece& piece) const override;
  std::vector<std::shared_ptr<Module>> blocks_of(const Piece& piece) const override;
  KvCache cache_of(const std::vector<Piece>& pieces, std::int64_t batch, std::int64_t capacity) override;

 private:
  void add_embedding(const PartArgs& args);
  void add_head(const PartArgs& args);
  ParameterPtr add_vocabulary(const PartArgs& args);
  ParameterPtr add_table(const PartArgs& args, const std::string& name, std::int64_t rows);
  /// (B, T) -> (B, T, C), as everything between layers: of a split sequence this rank's rows.
  at::Tensor embed(const at::Tensor& tokens, const ForwardContext& context) const;
  at::Tensor add_positions(const at::Tensor& h, const ForwardContext& context) const;
  /// h (B, T, C) behind the last block -> ForwardResults::ahead
  void look_ahead(at::Tensor h, const at::Tensor& tokens, const ForwardContext& context) const;
  /// Whether each rank along tp has its rows of hidden states; `cached`: of a forward with a cache.
  bool splits(bool cached) const { return ranks_.splits_sequence() && !cached; }
  Piece whole_piece() const { return {stage_.first, stage_.end, stage_.embeds, stage_.heads}; }  // all that it has
  const std::shared_ptr<Block>& block_at(std::int64_t layer) const { return blocks_.at(static_cast<std::size_t>(layer - stage_.first)); }
  at::Tensor run_block(std::size_t layer, const at::Tensor& h, const ForwardContext& context) const;
  at::Tensor run_whole_block(std::size_t layer, const at::Tensor& h, const ForwardContext& context) const;  // its weights are whole
  at::Tensor logits(const at::Tensor& h) const;                                                             // (B, T, C) -> (B, T, V)
  /// What the head's product becomes; (.., V) or a part of it.
  at::Tensor shaped(const at::Tensor& z) const;
  at::Tensor wide_head(const at::Tensor& h) const;  // the head's product in fp32

  config::Stage stage_;
  TensorRanks ranks_;       // over whom layers are divided, the vocabulary too
  ParameterPtr embedding_;  // (V, C)
  double embed_scale_ = 1;
  std::shared_ptr<Norm> embed_norm_;  // null without model.embed_norm
  ParameterPtr positions_;            // (max_seq_len, C): learned positions, or null
  bool sinusoidal_ = false;
  std::int64_t pad_id_ = -1;  // row of the embedding without a gradient
  Dropout drop_embed_;
  std::vector<std::shared_ptr<Block>> blocks_;
  std::vector<std::shared_ptr<MtpLayer>> mtp_;
  std::vector<RecomputePolicy> recompute_;  // of each block
  std::shared_ptr<Norm> norm_;
  std::shared_ptr<Linear> head_;  // (V, C), the embedding itself when tied
  double logit_scale_ = 1;
  double logit_cap_ = 0;
  OutputHead::Precision logits_precision_ = OutputHead::Precision::cast;
  std::unique_ptr<MoeBook> experts_;
  std::int64_t max_seq_len_ = 0;
};

/// Untrained positions (Vaswani et al. 2017): sin and cos of position * 10000^(-i / max(dim/2 - 1, 1)), sines first. `positions` (.., T)
/// int64 -> (.., T, dim) fp32.
at::Tensor sinusoids(const at::Tensor& positions, std::int64_t dim);

}  // namespace kf
