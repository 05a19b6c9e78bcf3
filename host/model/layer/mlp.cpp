#include "model/layer/mlp.h"

#include <ATen/ATen.h>

#include "config/schema/config.h"
#include "core/error.h"
#include "kernels/gated_mlp/gated_mlp.h"
#include "model/init.h"
#include "model/layer/one_node.h"
#include "model/observe.h"
#include "model/recompute/kept_results.h"
#include "registry/registries.h"

namespace kf {

at::Tensor Mlp::share(const at::Tensor& /*entered*/) const { fail(Code::other, "an mlp that no ranks divide has no shares"); }

GatedMlp::GatedMlp(const MlpOptions& o, const Activation& activation) : activation_(activation), ranks_(o.ranks), kernels_(o.kernels) {
  gate_ = add_child("gate_proj", std::make_shared<Linear>(o.dim, o.hidden, o.in, Role::hidden, o.bias));
  up_ = add_child("up_proj", std::make_shared<Linear>(o.dim, o.hidden, o.in, Role::hidden, o.bias));
  down_ = add_child("down_proj", std::make_shared<Linear>(o.hidden, o.dim, o.out, Role::hidden, o.bias));
  gate_->split(Split::colwise, 1, ranks_);
  up_->split(Split::colwise, 1, ranks_);
  down_->split(Split::rowwise, 1, ranks_);
  gate_->weight()->next_follows = !o.bias;
}

at::Tensor GatedMlp::as_one_node(const at::Tensor& x) const {
  if (kernels_->gated_mlp == nullptr || !activation_.is_kernel() || !gate_->bare() || !up_->bare() || !down_->bare() ||
      !may_be_one_node()) {
    return {};
  }
  return kernels_->gated_mlp({x, gate_->weight()->value, up_->weight()->value, down_->weight()->value, activation_.kind()});
}

at::Tensor GatedMlp::forward(const at::Tensor& x, const ForwardContext& context) const {
  if (at::Tensor y = as_one_node(x); y.defined()) {
    return y;
  }
  return observed(*this, x, ranks_.leave(share(ranks_.enter(x, context)), context));
}

at::Tensor GatedMlp::share(const at::Tensor& entered) const {
  const at::Tensor once = at::alias(entered);  // see Block
  const at::Tensor gate = named_result("gate", [&] { return gate_->forward(once); });
  const at::Tensor hidden = activation_.gate(gate, named_result("up", [&] { return up_->forward(once); }));
  return named_result("down", [&] { return down_->forward(hidden); });
}

PlainMlp::PlainMlp(const MlpOptions& o, const Activation& activation) : activation_(activation), ranks_(o.ranks) {
  up_ = add_child("up_proj", std::make_shared<Linear>(o.dim, o.hidden, o.in, Role::hidden, o.bias));
  down_ = add_child("down_proj", std::make_shared<Linear>(o.hidden, o.dim, o.out, Role::hidden, o.bias));
  up_->split(Split::colwise, 1, ranks_);
  down_->split(Split::rowwise, 1, ranks_);
}

at::Tensor PlainMlp::forward(const at::Tensor& x, const ForwardContext& context) const {
  return observed(*this, x, ranks_.leave(share(ranks_.enter(x, context)), context));
}

at::Tensor PlainMlp::share(const at::Tensor& entered) const {
  const at::Tensor hidden = activation_.plain(named_result("up", [&] { return up_->forward(entered); }));
  return named_result("down", [&] { return down_->forward(hidden); });
}

MlpOptions mlp_options(const PartArgs& args, std::int64_t dim, std::int64_t hidden) {
  const config::ModelConfig& m = args.config.model;
  return {dim, hidden, hidden_init(m, dim), output_init(m, hidden), m.mlp_bias, TensorRanks(args), args.kernels};
}

std::shared_ptr<Mlp> native_mlp(const PartArgs& args, const std::string& name, std::int64_t dim, std::int64_t hidden) {
  const MlpOptions options = mlp_options(args, dim, hidden);
  const Activation activation = activation_of(args, name);
  if (activation.gated()) {
    return std::make_shared<GatedMlp>(options, activation);
  }
  return std::make_shared<PlainMlp>(options, activation);
}

}  // namespace kf
