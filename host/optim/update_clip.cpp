#include "optim/update_clip.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "core/error.h"
#include "model/expert_stack.h"
#include "parallel/group.h"

namespace kf {
namespace {

constexpr const char* kNorms = "update_norms";
constexpr const char* kCount = "update_norm_count";

/// 0-dim; undefined without updates.
at::Tensor norm_of(const std::vector<at::Tensor>& updates) {
  return updates.empty() ? at::Tensor() : at::linalg_vector_norm(at::stack(at::_foreach_norm(updates, 2)), 2);
}

}  // namespace

void clip_by_rms(std::vector<at::Tensor>& updates, const std::vector<const Parameter*>& weights, double limit) {
  for (std::size_t i = 0; i < updates.size(); ++i) {
    const at::Tensor mean = updates[i].square().mean(own_dims(*weights[i]), /*keepdim=*/true);
    updates[i].div_((mean.sqrt() / limit).clamp_min(1));
  }
}

/// Over all ranks; undefined without updates.
at::Tensor UpdateNormClip::norm_over(const std::vector<at::Tensor>& updates, const std::vector<const Parameter*>& weights) const {
  if (over_.empty()) {
    return norm_of(updates);
  }
  std::vector<at::Tensor> counted;
  for (std::size_t i = 0; i < updates.size(); ++i) {
    if (weights[i]->first) {
      counted.push_back(updates[i]);
    }
  }
  const at::Tensor mine = norm_of(counted);
  const at::Tensor square = mine.defined() ? mine.square() : at::zeros({}, at::kFloat);
  for (Group* const ranks : over_) {
    ranks->sum(square);
  }
  return square.sqrt();
}

void UpdateNormClip::clip(std::vector<at::Tensor>& updates, const std::vector<const Parameter*>& weights) {
  const at::Tensor norm = norm_over(updates, weights);
  if (!norm.defined()) {
    return;
  }
  if (!norms_.defined()) {
    norms_ = at::zeros({window_}, norm.options());
  }
  if (count_ >= std::max<std::int64_t>(2, window_ / 2)) {
    const at::Tensor seen = norms_.narrow(0, 0, std::min(count_, window_));
    const at::Tensor cap = seen.mean() + sigma_ * seen.std(/*unbiased=*/false).clamp_min(1e-6);
    if (!updates.empty()) {
      at::_foreach_mul_(updates, (cap / norm).clamp_max(1));
    }
  }
  norms_[count_ % window_].copy_(norm);
  ++count_;
}

void UpdateNormClip::save(OptimizerState& state) const {
  state.integers[kCount] = count_;
  if (norms_.defined()) {
    state.tensors[kNorms] = norms_;
  }
}

void UpdateNormClip::load(const OptimizerState& state) {
  const auto count = state.integers.find(kCount);
  KF_CHECK(count != state.integers.end(), Code::checkpoint,
           "the optimizer state lacks '{}': it was saved without optimizer.update_norm_window", kCount);
  const auto norms = state.tensors.find(kNorms);
  KF_CHECK(count->second == 0 || (norms != state.tensors.end() && norms->second.numel() == window_), Code::checkpoint,
           "the optimizer state holds the norms of another optimizer.update_norm_window than {}", window_);
  count_ = count->second;
  norms_ = count_ == 0 ? at::Tensor() : norms->second.clone();
}

}  // namespace kf
