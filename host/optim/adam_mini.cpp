#include "optim/adam_mini.h"

#include <ATen/ATen.h>

#include "kernels/adamw/adamw.h"

namespace kf {
namespace {

std::int64_t blocks_of(const Parameter& parameter, std::int64_t head_dim) {
  const std::int64_t rows = rows_of_block(parameter, head_dim);
  return rows == 0 ? 1 : parameter.master.numel() / parameter.shape.back() / rows;
}

std::vector<Slots::Kind> kinds(std::int64_t head_dim) {
  const auto blocks = [head_dim](const Parameter& p) { return std::vector<std::int64_t>{blocks_of(p, head_dim)}; };
  return {{"exp_avg"}, {"exp_avg_sq", Slots::Start::zeros, at::kFloat, blocks}, {"step", Slots::Start::scalar}};
}

}  // namespace

std::int64_t rows_of_block(const Parameter& parameter, std::int64_t head_dim) {
  if (parameter.shape.size() < 2) {
    return 0;
  }
  const bool heads = parameter.name.ends_with("q_proj.weight") || parameter.name.ends_with("k_proj.weight");
  return heads && parameter.shape.front() % head_dim == 0 ? head_dim : 1;
}

AdamMini::AdamMini(std::vector<ParamGroup> groups, const AdamMiniOptions& options)
    : GroupOptimizer(std::move(groups), kinds(options.head_dim)), options_(options) {}

void AdamMini::update(TensorLists& lists, double lr, double weight_decay) {
  const AdamMiniOptions& o = options_;
  decay_weights(lists.masters, lr, weight_decay);
  for (std::size_t i = 0; i < lists.masters.size(); ++i) {
    const at::Tensor& g = lists.gradients[i];
    at::Tensor& m = lists.slots[0][i];
    at::Tensor& v = lists.slots[1][i];  // (blocks)
    at::Tensor& step = lists.slots[2][i];
    const std::int64_t blocks = v.numel();
    step.add_(1);
    m.lerp_(g, 1 - o.beta1);
    v.mul_(o.beta2).add_(g.reshape({blocks, -1}).square().mean(1), 1 - o.beta2);
    const at::Tensor denominator = (v / bias_correction(o.beta2, step)).sqrt() + o.eps;
    const at::Tensor u = (m / bias_correction(o.beta1, step)).reshape({blocks, -1}) / denominator.unsqueeze(1);
    lists.masters[i].sub_(u.view_as(m), lr);
  }
}

}  // namespace kf
