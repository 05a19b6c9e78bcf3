#include "kernels/product/put_off.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <utility>

#include "kernels/product/product.h"

namespace kf {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

thread_local PutOffProducts* current = nullptr;

}  // namespace

struct PutOffProducts::Node : torch::autograd::Function<PutOffProducts::Node> {
  struct Held : torch::CustomClassHolder {
    Held(PutOffProducts* where, at::Tensor leaf) : products(where), weight(std::move(leaf)) {}
    PutOffProducts* products;
    at::Tensor weight;
  };
  static Variable forward(AutogradContext* context, const Variable& x, const Variable& weight, PutOffProducts* products) {
    context->save_for_backward({x});
    context->saved_data["held"] = c10::IValue::make_capsule(c10::make_intrusive<Held>(products, weight));
    return product_nt(x, weight);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto held = c10::static_intrusive_pointer_cast<Held>(context->saved_data["held"].toCapsule());
    const at::Tensor x = context->get_saved_variables()[0];
    held->products->all_.push_back({held->weight, gradients[0], x.detach()});
    return {context->needs_input_grad(0) ? product_nn(gradients[0], held->weight.detach()) : Variable(), Variable(), Variable()};
  }
};

PutOffProducts::Scope::Scope(PutOffProducts* products) : before_(std::exchange(current, products)) {}
PutOffProducts::Scope::~Scope() { current = before_; }

bool PutOffProducts::active() { return current != nullptr; }

at::Tensor PutOffProducts::product(const at::Tensor& x, const at::Tensor& weight) {
  // Without a graph, too: what recomputation keeps of a first forward must be what the second one asks for.
  if (current == nullptr || !weight.requires_grad() || !weight.is_leaf() || x.scalar_type() != weight.scalar_type()) {
    return {};
  }
  std::vector<std::int64_t> shape = x.sizes().vec();
  shape.back() = weight.size(0);
  return Node::apply(x.reshape({-1, x.size(-1)}), weight, current).view(shape);
}

void PutOffProducts::run() {
  const at::NoGradGuard no_grad;
  for (const One& one : std::exchange(all_, {})) {
    at::Tensor gradient = product_tn(one.gradient, one.x);
    if (at::Tensor& sum = one.weight.mutable_grad(); sum.defined()) {
      sum.add_(gradient);
    } else {
      sum = std::move(gradient);
    }
  }
}

}  // namespace kf
