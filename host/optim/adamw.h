#pragma once
// AdamW: Adam with decoupled weight decay (Loshchilov and Hutter 2019, algorithm 2), and the extras of optax and Levanter.

#include <optional>

#include "kernels/adamw/adamw.h"
#include "kernels/kernels.h"
#include "optim/optimizer.h"
#include "optim/slots.h"
#include "optim/update_clip.h"

namespace kf {

struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  const Kernels* kernels = &fused_kernels();
  double eps_root = 0;                 // m / (sqrt(v + eps_root) + eps)
  bool nesterov = false;               // numerator beta1 m_t / (1 - beta1^(t+1)) + (1 - beta1) g / (1 - beta1^t) (Dozat 2016)
  double corrected_by = 0;             // AdamC (Defazio 2025): the decay is multiplied by lr / this; 0 for none
  at::ScalarType type_m = at::kFloat;  // of the first moment in memory: fp32, bf16, or blockwise (kernels/adamw/blockwise.h) with a sign,
  at::ScalarType type_v = at::kFloat;  // of the second one: without
  double rms_clip = 0;                 // 0 for none, see clip_by_rms
  std::int64_t norm_window = 0;        // 0 for none, see UpdateNormClip
  double norm_sigma = 3;
};

class AdamW final : public Optimizer {
 public:
  AdamW(std::vector<ParamGroup> groups, const AdamWOptions& options);
  Needs needs(const Parameter& /*weight*/) const override { return options_.rms_clip > 0 ? Needs::whole : Needs::elements; }
  void add_over(Group& shards) override;
  void step(double lr) override { step_with(lr, {}); }
  bool takes_factor() const override { return !clips(); }
  bool takes_verdict() const override;
  void step_with(double lr, const UpdateTerms& terms) override;
  OptimizerState state() const override;
  void load(const OptimizerState& state) override;

 private:
  bool clips() const { return options_.rms_clip > 0 || norm_clip_; }
  void move(const TensorLists& lists, const AdamWNumbers& numbers, const UpdateTerms& terms) const;
  void clipped(std::vector<TensorLists>& all, const std::vector<double>& decays, double lr);

  std::vector<ParamGroup> groups_;
  AdamWOptions options_;
  Slots slots_;  // exp_avg, exp_avg_sq, step
  std::optional<UpdateNormClip> norm_clip_;
};

}  // namespace kf
