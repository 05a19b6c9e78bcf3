#pragma once
// softmax(q k^T) v with everything that models do to the scores.

#include <ATen/core/Tensor.h>

#include "kernels/attention/attention.h"
#include "kernels/kernels.h"
#include "model/layer/dropout.h"
#include "model/layer/visibility.h"
#include "model/model.h"

namespace kf {

struct ScoreOptions {
  AttentionRules rules;
  std::int64_t layer = 0;
  std::int64_t all_heads = 0;  // H, where this rank has `heads` of them alone, from `first_head` on; 0: it has all
  std::int64_t first_head = 0;
  std::int64_t heads = 0;
  std::int64_t alibi_heads = 0;  // H: scores are lowered by slope_h times the distance (Press et al. 2022); 0 for none
  double alibi_scale = 1;        // multiplies the slopes
  Reach reach;
  bool ring = false;  // context parallelism: keys and values go round the ranks; else all come at once
  const Kernels* kernels = &fused_kernels();
};

/// 2^(-8 i / H) for i = 1 .. H where H is a power of two; other H take every second slope of twice the power below (Press et al. 2022).
at::Tensor alibi_slopes(std::int64_t heads);

/// Mixes values by scores, by the table's attention; what is to be differentiated twice takes the formula.
class Mixer {
 public:
  Mixer(const ScoreOptions& options, Dropout dropout);

  /// Whether what is mixed here is softmax(cap(scale q k^T)) v over ranges of keys and nothing else, so that Kernels::self_attention can
  /// do it, which is then not null.
  bool takes_one_node(const ForwardContext& context, bool training) const;
  const ScoreOptions& options() const { return options_; }

  /// q (B, H, T, D), k (B, Hkv, S, D), v (B, Hkv, S, Dv) -> (B, H, T, Dv), of this rank's heads; query head h reads kv head h / (H / Hkv).
  /// Where the T positions are a rank's part of a sequence (Visibility::part), k and v are of this rank's positions, or of all of them.
  /// `sinks` (H) fp32 or undefined: scores that take part in each softmax and bring no value (gpt-oss).
  at::Tensor mix(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& sinks, const ForwardContext& context,
                 bool training) const;

 private:
  /// Of the weights of all heads, what is dropped of those here.
  at::Tensor dropped(const at::Tensor& weights, const ForwardContext& context, bool training) const;
  /// (H of this rank) -> (H of all) with -inf elsewhere.
  at::Tensor among_all(const at::Tensor& scores) const;
  /// (B or 1, H, T, S): the penalty of distances, -inf where `seen`, undefined for everything, is false.
  at::Tensor alibi(const at::Tensor& seen, std::int64_t fresh, std::int64_t all, at::Device device) const;

  at::Tensor mix_part(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& sinks, const ForwardContext& context,
                      bool training) const;
  const at::Tensor& slopes(at::Device device) const;

  ScoreOptions options_;
  Dropout dropout_;
  mutable at::Tensor slopes_;  // (H) fp32, on the device of the scores
};

}  // namespace kf
