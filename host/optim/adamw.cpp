#include "optim/adamw.h"

#include <ATen/ATen.h>

#include "optim/group_optimizer.h"

namespace kf {
namespace {

constexpr std::size_t kM = 0;
constexpr std::size_t kV = 1;
constexpr std::size_t kStep = 2;

/// Moves the moments and returns the directions m / (sqrt(v) + eps), both corrected for their bias: one tensor after the other, the
/// reference of the fused kernel.
std::vector<at::Tensor> directions(TensorLists& lists, const AdamWOptions& o) {
  std::vector<at::Tensor>& m = lists.slots[kM];
  std::vector<at::Tensor>& v = lists.slots[kV];
  at::_foreach_lerp_(m, lists.gradients, 1 - o.beta1);
  at::_foreach_mul_(v, o.beta2);
  at::_foreach_addcmul_(v, lists.gradients, lists.gradients, 1 - o.beta2);
  std::vector<at::Tensor> out;
  for (std::size_t i = 0; i < lists.masters.size(); ++i) {
    const at::Tensor& step = lists.slots[kStep][i];  // parameters may have begun at different steps
    const at::Tensor mean = o.nesterov ? o.beta1 * m[i] / bias_correction(o.beta1, step + 1) +
                                             (1 - o.beta1) * lists.gradients[i] / bias_correction(o.beta1, step)
                                       : m[i] / bias_correction(o.beta1, step);
    const at::Tensor variance = v[i] / bias_correction(o.beta2, step);
    out.push_back(mean / ((o.eps_root > 0 ? variance + o.eps_root : variance).sqrt() + o.eps));
  }
  return out;
}

bool has_extras(const AdamWOptions& o) { return o.eps_root > 0 || o.nesterov; }

}  // namespace

AdamW::AdamW(std::vector<ParamGroup> groups, const AdamWOptions& options)
    : groups_(std::move(groups)),
      options_(options),
      slots_({{"exp_avg", Slots::Start::zeros, options.type_m},
              {"exp_avg_sq", Slots::Start::zeros, options.type_v},
              {"step", Slots::Start::scalar}}) {
  if (options.norm_window > 0) {
    norm_clip_.emplace(options.norm_window, options.norm_sigma);
  }
}

bool AdamW::takes_verdict() const { return options_.fused && !has_extras(options_) && !clips(); }

void AdamW::plain(TensorLists& lists, double lr, double weight_decay, const at::Tensor& ok) const {
  if (options_.fused && !has_extras(options_)) {
    const std::optional<at::Tensor> found_inf = ok.defined() ? std::optional(1 - ok) : std::nullopt;
    at::_fused_adamw_(lists.masters, lists.gradients, lists.slots[kM], lists.slots[kV], {}, lists.slots[kStep], lr, options_.beta1,
                      options_.beta2, weight_decay, options_.eps, /*amsgrad=*/false, /*maximize=*/false, /*grad_scale=*/{}, found_inf);
    return;
  }
  const std::vector<at::Tensor> updates = directions(lists, options_);
  decay_weights(lists.masters, lr, weight_decay);
  at::_foreach_add_(lists.masters, updates, -lr);
}

void AdamW::clipped(std::vector<TensorLists>& all, const std::vector<double>& decays, double lr) {
  std::vector<at::Tensor> updates;
  std::vector<at::Tensor> masters;
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::vector<at::Tensor> mine = directions(all[i], options_);
    at::_foreach_add_(mine, all[i].masters, decays[i]);  // what is clipped is the whole update
    updates.insert(updates.end(), mine.begin(), mine.end());
    masters.insert(masters.end(), all[i].masters.begin(), all[i].masters.end());
  }
  if (options_.rms_clip > 0) {
    clip_by_rms(updates, options_.rms_clip);
  }
  if (norm_clip_) {
    norm_clip_->clip(updates);
  }
  if (!updates.empty()) {
    at::_foreach_add_(masters, updates, -lr);
  }
}

void AdamW::add_over(Group& shards) {
  if (norm_clip_) {
    norm_clip_->add_over(shards);
  }
}

void AdamW::update(double lr, const at::Tensor& ok) {
  const at::NoGradGuard no_grad;
  const double correction = options_.corrected_by > 0 ? lr / options_.corrected_by : 1;
  std::vector<TensorLists> all;
  std::vector<double> decays;
  for (const ParamGroup& group : groups_) {
    TensorLists lists = lists_of(group, slots_);
    if (lists.empty()) {
      continue;
    }
    ok.defined() ? at::_foreach_add_(lists.slots[kStep], ok) : at::_foreach_add_(lists.slots[kStep], 1);
    decays.push_back(group.weight_decay * correction);
    if (clips()) {
      all.push_back(std::move(lists));
    } else {
      plain(lists, lr, decays.back(), ok);
      lists.write_back();
    }
  }
  if (clips()) {
    clipped(all, decays, lr);
    for (TensorLists& lists : all) {
      lists.write_back();
    }
  }
}

OptimizerState AdamW::state() const {
  OptimizerState state;
  slots_.save(state);
  if (norm_clip_) {
    norm_clip_->save(state);
  }
  return state;
}

void AdamW::load(const OptimizerState& state) {
  slots_.load(state, groups_);
  if (norm_clip_) {
    norm_clip_->load(state);
  }
}

}  // namespace kf
