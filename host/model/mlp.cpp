#include "model/mlp.h"

#include <ATen/ATen.h>

namespace kf {

GatedMlp::GatedMlp(const MlpOptions& o, Activation activation) : activation_(activation) {
  const Init init = Init::normal(o.init_std);
  gate_ = add_child("gate_proj", std::make_shared<Linear>(o.dim, o.hidden, init));
  up_ = add_child("up_proj", std::make_shared<Linear>(o.dim, o.hidden, init));
  down_ = add_child("down_proj", std::make_shared<Linear>(o.hidden, o.dim, output_init(o.init_std, o.n_layers)));
}

at::Tensor GatedMlp::forward(const at::Tensor& x) const { return down_->forward(activation_(gate_->forward(x)) * up_->forward(x)); }

PlainMlp::PlainMlp(const MlpOptions& o, Activation activation) : activation_(activation) {
  up_ = add_child("up_proj", std::make_shared<Linear>(o.dim, o.hidden, Init::normal(o.init_std)));
  down_ = add_child("down_proj", std::make_shared<Linear>(o.hidden, o.dim, output_init(o.init_std, o.n_layers)));
}

at::Tensor PlainMlp::forward(const at::Tensor& x) const { return down_->forward(activation_(up_->forward(x))); }

at::Tensor silu(const at::Tensor& x) { return at::silu(x); }
at::Tensor gelu(const at::Tensor& x) { return at::gelu(x); }
at::Tensor relu(const at::Tensor& x) { return at::relu(x); }

}  // namespace kf
