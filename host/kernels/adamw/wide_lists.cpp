#include "kernels/adamw/wide_lists.h"

#include <ATen/ATen.h>

#include "kernels/adamw/blockwise.h"

namespace kf {

WideLists::WideLists(const AdamWLists& stored)
    : weights_(widened(stored.weights, stored.weights)),
      m_(widened(stored.m, stored.weights)),
      v_(widened(stored.v, stored.weights)),
      steps_(stored.steps.vec()),
      values_(stored.values.vec()),
      ok_(stored.ok) {
  for (const at::Tensor& gradient : stored.gradients) {
    gradients_.push_back(gradient.to(at::kFloat));
  }
  if (stored.factor.defined()) {
    at::_foreach_mul_(gradients_, stored.factor);
  }
}

at::Tensor WorkingCopies::of(const at::Tensor& stored, at::IntArrayRef sizes) {
  if (stored.scalar_type() == at::kFloat) {
    return stored;
  }
  copies_.emplace_back(stored, is_blockwise(stored.scalar_type()) ? from_blockwise(stored, sizes) : stored.to(at::kFloat));
  return copies_.back().second;
}

void WorkingCopies::write_back() const {
  for (const auto& [stored, working] : copies_) {
    is_blockwise(stored.scalar_type()) ? to_blockwise(working, stored) : void(stored.copy_(working));
  }
}

std::vector<at::Tensor> WideLists::widened(at::TensorList stored, at::TensorList weights) {
  std::vector<at::Tensor> out;
  for (std::size_t i = 0; i < stored.size(); ++i) {
    out.push_back(copies_.of(stored[i], weights[i].sizes()));
  }
  return out;
}

void WideLists::write_back() const {
  copies_.write_back();
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if (values_[i].defined()) {
      values_[i].copy_(weights_[i]);
    }
  }
}

}  // namespace kf
