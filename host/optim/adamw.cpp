#include "optim/adamw.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <iterator>

#include "kernels/adamw/adamw.h"
#include "optim/values.h"

namespace kf {
namespace {

constexpr std::size_t kM = 0;
constexpr std::size_t kV = 1;
constexpr std::size_t kStep = 2;

AdamWLists lists_of_kernel(const TensorLists& lists) {
  return {lists.masters, lists.gradients, lists.slots[kM], lists.slots[kV], lists.slots[kStep]};
}

/// Adds `ok`, or 1 where it is undefined. On a CPU without an operator for each: there are as many as weights.
void count_update(const std::vector<at::Tensor>& steps, const at::Tensor& ok) {
  const bool here = std::all_of(steps.begin(), steps.end(), [](const at::Tensor& step) { return step.is_cpu(); });
  if (!here) {
    ok.defined() ? at::_foreach_add_(steps, ok) : at::_foreach_add_(steps, 1);
    return;
  }
  const float more = ok.defined() ? *ok.const_data_ptr<float>() : 1;
  for (const at::Tensor& step : steps) {
    *step.mutable_data_ptr<float>() += more;
  }
}

AdamWNumbers numbers_of(const AdamWOptions& o, double lr, double weight_decay) {
  return {lr, weight_decay, o.beta1, o.beta2, o.eps, o.eps_root, o.nesterov};
}

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

bool AdamW::takes_verdict() const { return options_.eps_root == 0 && !options_.nesterov && !clips(); }

void AdamW::clipped(std::vector<TensorLists>& all, const std::vector<double>& decays, double lr) {
  std::vector<at::Tensor> updates;
  std::vector<at::Tensor> masters;
  std::vector<const Parameter*> weights;
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::vector<at::Tensor> mine = adamw_directions(lists_of_kernel(all[i]), numbers_of(options_, lr, decays[i]));
    at::_foreach_add_(mine, all[i].masters, decays[i]);  // what is clipped is the whole update
    updates.insert(updates.end(), mine.begin(), mine.end());
    masters.insert(masters.end(), all[i].masters.begin(), all[i].masters.end());
    weights.insert(weights.end(), all[i].parameters.begin(), all[i].parameters.end());
  }
  if (options_.rms_clip > 0) {
    clip_by_rms(updates, weights, options_.rms_clip);
  }
  if (norm_clip_) {
    norm_clip_->clip(updates, weights);
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

/// Weights, their values, and 16-bit moments in one pass, which clips the gradients on its way.
void AdamW::move(const TensorLists& lists, const AdamWNumbers& numbers, const UpdateTerms& terms) const {
  const std::vector<at::Tensor> values = values_beside(lists);
  AdamWLists all = lists_of_kernel(lists);
  all.values = values;
  all.factor = terms.factor;
  all.ok = terms.ok;
  options_.kernels->adamw(all, numbers);
  say_written(lists, values);
}

void AdamW::step_with(double lr, const UpdateTerms& terms) {
  const at::NoGradGuard no_grad;
  const double correction = options_.corrected_by > 0 ? lr / options_.corrected_by : 1;
  std::vector<TensorLists> all;
  std::vector<double> decays;
  for (const ParamGroup& group : groups_) {
    TensorLists lists = clips() ? lists_of(group, slots_) : stored_lists_of(group, slots_);
    if (lists.empty()) {
      continue;
    }
    count_update(lists.slots[kStep], terms.ok);
    decays.push_back(group.weight_decay * correction);
    if (clips()) {
      all.push_back(std::move(lists));
    } else {
      move(lists, numbers_of(options_, lr, decays.back()), terms);
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
