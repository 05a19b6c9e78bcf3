#pragma once
// Self-attention with grouped queries (Ainslie et al. 2023) and the variants of open models: model.attention = "gqa".

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>

#include "model/layer/attention.h"
#include "model/layer/linear.h"
#include "model/layer/norm.h"
#include "model/layer/place.h"
#include "model/layer/rope.h"
#include "model/layer/score.h"
#include "model/layer/tensor_ranks.h"

namespace kf {

namespace config {
struct ModelConfig;
}

struct HeadNorms;
struct PartArgs;
struct Place;

/// Query t is scaled by 1 + scale ln(1 + floor((t + first) / floor)).
struct TemperatureTuning {
  double scale = 0.1;
  std::int64_t floor = 8192;
  std::int64_t first = 1;  // number of the first position
};

class GroupedAttention final : public Attention {
 public:
  GroupedAttention(const PartArgs& args, const Place& place);
  at::Tensor forward(const at::Tensor& x, const ForwardContext& context) const override;
  void scale_queries(const at::Tensor& factors) const override;
  KvCache::Layer make_cache(std::int64_t batch, std::int64_t capacity, const at::Tensor& like) const override;
  bool has_cache() const override { return true; }
  bool takes_padding() const override { return true; }
  bool keeps_cache(std::int64_t length, std::int64_t longer) const override;

 private:
  void add_norms(const PartArgs& args);
  /// What the kernel that is one node computes of the norms of q and k; nothing where they are others than it has.
  std::optional<HeadNorms> head_norms() const;
  /// By the kernel that is one node; undefined where the formula has to do it.
  at::Tensor as_one_node(const at::Tensor& x, const ForwardContext& context) const;
  /// Keys or values (B, heads here, T, D) -> those that this rank's queries read.
  at::Tensor own_kv_heads(const at::Tensor& x) const;
  /// (B, T, H D) -> (B, H, T, D), normalised where that comes before the rotation.
  at::Tensor heads(const at::Tensor& projected, const std::shared_ptr<Norm>& norm) const;
  /// The same for values: `norm`, null for none, over D.
  at::Tensor split(const at::Tensor& projected, const std::shared_ptr<Norm>& norm) const;
  /// What was mixed, (B, H, T, D) -> (B, T, H D), behind the gate of the layer's input.
  at::Tensor gated(const at::Tensor& mixed, const at::Tensor& x) const;
  /// Rotated, and normalised after it where the model does.
  void split_by_heads(bool gate_a_head);
  at::Tensor placed(const at::Tensor& x, const std::shared_ptr<Norm>& norm, const ForwardContext& context) const;
  at::Tensor tempered(const at::Tensor& q, const ForwardContext& context) const;

  TensorRanks ranks_;        // over whom heads are divided
  std::int64_t n_kv_heads_;  // Hkv; query head h reads kv head h / (H / Hkv)
  std::int64_t head_dim_;    // D
  /// Where the ranks do not divide Hkv, every one projects all kv heads, and these are the ones of its queries: one for all of them, or one
  /// for each. Empty where they do.
  std::vector<std::int64_t> kv_of_queries_;
  std::int64_t layer_;
  Mixer mixer_;
  std::shared_ptr<const Rope> rope_;                // null in layers without rotation
  std::shared_ptr<Linear> q_, k_, v_, o_;           // no v where the values are the keys
  std::shared_ptr<Linear> gate_;                    // null for none
  std::shared_ptr<Norm> q_norm_, k_norm_, v_norm_;  // null for none
  bool norm_whole_ = false;                         // over all heads, not over D
  bool norm_late_ = false;                          // after the rotation
  bool norm_absolute_ = false;                      // not the same for vectors that are turned: with weights, or a mean taken away
  double clip_ = 0;                                 // of projections, 0 for none
  std::optional<TemperatureTuning> temperature_;
  ParameterPtr sinks_;  // (H) or null
};

/// What multiplies q k^T: attn_scale or 1 / sqrt(head_dim), divided by layer + 1 (GPT-2 option), times yarn's temperature squared where
/// it acts on the scores (DeepSeek).
double score_scale(const config::ModelConfig& model, std::int64_t layer, std::int64_t head_dim);
/// The scores of a layer by the settings; `head_dim` decides the scale where the settings leave it open.
ScoreOptions score_options(const PartArgs& args, std::int64_t layer, std::int64_t head_dim);
/// The rotation of a layer by the settings.
RopeOptions rope_options(const PartArgs& args, std::int64_t layer, std::int64_t head_dim);

}  // namespace kf
