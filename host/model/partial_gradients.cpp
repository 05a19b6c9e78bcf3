#include "model/partial_gradients.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

namespace kf {

bool has_partial_gradient(const Parameter& weight) {
  const bool cut = std::any_of(weight.placement.cuts.begin(), weight.placement.cuts.end(), [](const Cut& c) { return c.axis == Axis::tp; });
  return !cut && (weight.split == Split::sequence || weight.split == Split::experts);
}

namespace {

/// Weights of which this rank trains a part whose gradient any rank has; where it is missing here, it is 0.
ParameterList with_gradient(const ParameterList& weights, Group& ranks) {
  ParameterList partial;
  for (const ParameterPtr& weight : weights) {
    if (weight->trains() && has_partial_gradient(*weight) && weight->part_numel() > 0) {
      partial.push_back(weight);
    }
  }
  if (partial.empty()) {
    return {};
  }
  const at::Tensor any = at::zeros({static_cast<std::int64_t>(partial.size())}, at::kByte);
  for (std::size_t i = 0; i < partial.size(); ++i) {
    any.mutable_data_ptr<std::uint8_t>()[i] = partial[i]->gradient().defined() ? 1 : 0;
  }
  ranks.largest(any);
  ParameterList out;
  for (std::size_t i = 0; i < partial.size(); ++i) {
    if (any.const_data_ptr<std::uint8_t>()[i] == 0) {
      continue;
    }
    Parameter& weight = *partial[i];
    if (!weight.gradient().defined() && weight.placement.rows() == nullptr) {
      weight.zero_gradient();
    } else if (!weight.gradient().defined()) {
      weight.part_gradient = at::zeros(weight.placement.of(weight.shape).size, weight.master.options().dtype(weight.sum_type));
    }
    out.push_back(partial[i]);
  }
  return out;
}

}  // namespace

void sum_partial_gradients(const ParameterList& weights, Group& ranks) {
  if (ranks.size() == 1) {
    return;
  }
  const at::NoGradGuard no_grad;
  constexpr std::int64_t kMost = 8 << 20;  // numbers
  const ParameterList all = with_gradient(weights, ranks);
  for (std::size_t first = 0; first < all.size();) {
    std::vector<at::Tensor> gradients, rows;
    for (std::int64_t count = 0; first < all.size() && (count == 0 || count + all[first]->part_numel() <= kMost); ++first) {
      gradients.push_back(all[first]->gradient());
      rows.push_back(gradients.back().to(at::kFloat).flatten());
      count += all[first]->part_numel();
    }
    const at::Tensor flat = at::cat(rows);
    ranks.sum(flat);
    std::int64_t at = 0;
    for (const at::Tensor& gradient : gradients) {
      gradient.copy_(flat.narrow(0, at, gradient.numel()).view_as(gradient));
      at += gradient.numel();
    }
  }
}

}  // namespace kf
