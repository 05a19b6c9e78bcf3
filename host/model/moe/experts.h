#pragma once
// The experts of a layer: n feed-forward layers of one shape, each for the tokens that were sent to it.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "model/layer/activation.h"
#include "model/layer/mlp.h"
#include "model/layer/runs_whole.h"
#include "model/module.h"

namespace kf {

class ExpertRows;
class Group;

/// N tokens on their way to k experts each.
struct Dispatch {
  at::Tensor experts;  // (N, k) int64
  at::Tensor weights;  // (N, k) fp32
  /// (N, k) bool, undefined for none and on one rank along ep: assignments behind a full expert. Their weights are 0, and no other rank
  /// gets them.
  at::Tensor dropped;
  /// (E) fp32, undefined for none: factors of the gradients of the experts' outputs.
  at::Tensor gradient_factors;
  /// Multiply what goes into an expert instead of what comes out (Llama 4).
  bool weigh_input = false;
};

/// Over several ranks each has its own E / size experts, in order of ranks, and every rank brings tokens: forward is a call of all of them.
class Experts : public Module {
 public:
  /// Whether ranks along tp divide each expert.
  virtual bool divided() const { return false; }
  /// (N, C) -> (N, C). Divided: x is for a divided computation, and a rank's share of the sum comes out. Otherwise both are the same on all
  /// ranks along tp.
  virtual at::Tensor forward(const at::Tensor& x, const Dispatch& dispatch, const ForwardContext& context) const = 0;

 protected:
  /// What experts make of rows sorted by expert: (R, C) -> (R, C). Over several ranks those of this rank alone.
  using Work = std::function<at::Tensor(const at::Tensor& rows, const ExpertRows& order)>;
  /// Sorts the tokens' rows, sends them to the ranks of their experts, lets `work` do its part, and adds up by token what came back.
  /// `owners` null: all experts are here.
  static at::Tensor by_expert(const at::Tensor& x, const Dispatch& dispatch, std::int64_t experts, Group* owners, const Work& work);
};

struct ExpertsOptions {
  std::int64_t experts = 0;  // E
  std::int64_t dim = 0;      // C
  std::int64_t hidden = 0;   // F
  Init in, out;              // of gate and up, of down
  bool bias = false;
  TensorRanks ranks = {};  // over whom F is divided
  bool packed = false;  // how checkpoints hold them: up_w (E, C, F), gate_w (E, C, F), down_w (E, F, C), or experts.{e}.up_proj.weight ...
  Group* owners = nullptr;  // among whom the experts are divided; null: all are here
};

/// The weights of all experts in one stack a matrix: (E, F, C) gate and up, (E, C, F) down, as at::linear takes them.
class StackedExperts : public Experts {
 public:
  StackedExperts(const ExpertsOptions& options, const Activation& activation);
  bool divided() const override { return ranks_.many(); }

 protected:
  struct Stack {
    ParameterPtr weight, bias;  // (E, out, in); (E, out), null without
  };
  Stack add_stack(const ExpertsOptions& options, const std::string& name, std::int64_t in, std::int64_t out, const Init& init);
  /// Of a matrix whose outputs are divided, this rank's; of the last one, whose inputs are, the first rank's alone: the others add none.
  at::Tensor inner_bias(const Stack& stack) const;
  at::Tensor outer_bias(const Stack& stack) const;
  /// With weights of tokens whose gradients are summed: each rank makes its share of the outputs with them.
  Dispatch shared(const Dispatch& dispatch) const;

  std::int64_t experts_;
  Group* owners_;
  TensorRanks ranks_;
  Activation activation_;
  Stack gate_, up_, down_;  // no gate where the activation has none
};

/// All experts at once on rows sorted by expert (Gale et al. 2023, MegaBlocks): drops nothing, pads nothing.
class GroupedExperts final : public StackedExperts {
 public:
  /// `product` as Kernels::grouped_linear.
  using Product = at::Tensor (*)(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, const ExpertRows& rows);
  GroupedExperts(const ExpertsOptions& options, const Activation& activation, Product product)
      : StackedExperts(options, activation), product_(product) {}
  at::Tensor forward(const at::Tensor& x, const Dispatch& dispatch, const ForwardContext& context) const override;

 private:
  Product product_;
};

/// One expert after the other from plain operators: what the grouped form must equal. On one rank it sorts nothing.
class LoopExperts final : public StackedExperts {
 public:
  using StackedExperts::StackedExperts;
  at::Tensor forward(const at::Tensor& x, const Dispatch& dispatch, const ForwardContext& context) const override;

 private:
  std::vector<std::vector<at::Tensor>> weights() const;
  at::Tensor run(std::int64_t expert, const std::vector<std::vector<at::Tensor>>& weights, const at::Tensor& x) const;
  at::Tensor sorted(const at::Tensor& rows, const ExpertRows& order) const;  // (R, C)
};

/// Experts made of any registered mlp, one module each. Over several ranks those of other ranks are empty here.
class ModuleExperts final : public Experts, public RunsWhole {
 public:
  explicit ModuleExperts(std::vector<std::shared_ptr<Mlp>> experts, Group* owners = nullptr);
  at::Tensor forward(const at::Tensor& x, const Dispatch& dispatch, const ForwardContext& context) const override;

 private:
  void place(std::int64_t expert);
  bool any_trains() const;

  std::vector<std::shared_ptr<Mlp>> experts_;
  Group* owners_;
};

}  // namespace kf
