#include "model/moe/moe_book.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>

#include "core/text.h"
#include "metrics/names/names.h"
#include "parallel/group.h"

namespace kf {
namespace {

at::Tensor zero_like(const at::Tensor& counts) { return at::zeros({}, counts.options().dtype(at::kFloat)); }

at::Tensor or_zero(const at::Tensor& value, const at::Tensor& counts) { return value.defined() ? value.detach() : zero_like(counts); }

void add_to(at::Tensor& sum, const at::Tensor& term) { sum = sum.defined() ? sum + term : term; }

/// What each layer left, none or several where it ran so often: in the order of the layers, which does not depend on that of running.
template <typename Records>
auto by_layer(Records& records, const std::vector<std::shared_ptr<MoeLayer>>& layers) {
  std::vector<std::vector<decltype(&records.front())>> out(layers.size());
  for (auto& record : records) {
    const auto found = std::find_if(layers.begin(), layers.end(), [&](const auto& layer) { return layer.get() == record.layer; });
    if (found != layers.end()) {
      out[static_cast<std::size_t>(found - layers.begin())].push_back(&record);
    }
  }
  return out;
}

/// Balance losses that are made of shares of the assignments: of those on all ranks instead of those on this one. Their mean over the
/// ranks, weighed by tokens, is then the balance of all tokens.
void take_shares_of_all(const std::vector<ExpertsRecord*>& records, Group& data) {
  std::vector<at::Tensor> counts;
  for (const ExpertsRecord* record : records) {
    if (record->counts.defined()) {
      counts.push_back(record->counts);
    }
  }
  if (counts.empty()) {
    return;
  }
  const at::Tensor all = at::cat(counts);
  data.sum(all);
  std::int64_t at = 0;
  for (ExpertsRecord* record : records) {
    if (!record->counts.defined()) {
      continue;
    }
    const at::Tensor sum = all.narrow(0, at, record->counts.numel()).to(at::kFloat);
    at += sum.numel();
    if (record->mean_scores.defined()) {
      record->balance = (sum / sum.sum() * record->mean_scores).sum() * record->balance_factor;
    }
  }
}

}  // namespace

MoeBook::MoeBook(const Module& model) {
  collect(model);
  runs_here_.resize(layers_.size());
}

void MoeBook::collect(const Module& module) {
  for (const auto& [name, child] : module.children()) {
    if (auto layer = std::dynamic_pointer_cast<MoeLayer>(child)) {
      layers_.push_back(std::move(layer));
    } else {
      collect(*child);
    }
  }
}

AuxLosses MoeBook::losses(ForwardResults& results, Group* data) const {
  AuxLosses losses;
  std::vector<ExpertsRecord*> records;
  for (const auto& layer : by_layer(results.experts, layers_)) {
    records.insert(records.end(), layer.begin(), layer.end());
  }
  if (data != nullptr && data->size() > 1 && at::GradMode::is_enabled()) {
    take_shares_of_all(records, *data);
  }
  for (const ExpertsRecord* record : records) {
    if (const double weight = record->layer->router().balance_weight(); record->balance.defined() && weight != 0) {
      add_to(losses.balance, record->balance * weight);
    }
    if (record->extra.defined()) {
      add_to(losses.balance, record->extra);
    }
    if (const double weight = record->layer->options().z_weight; record->z.defined() && weight != 0) {
      add_to(losses.router_z, record->z * weight);
    }
  }
  return losses;
}

void MoeBook::end_micro(const ForwardResults& results) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> counts(layers_.size());
  at::Tensor balance, z, dropped;
  double positions = 0;
  const auto all = by_layer(results.experts, layers_);
  for (std::size_t layer = 0; layer < all.size(); ++layer) {
    for (const ExpertsRecord* record : all[layer]) {
      if (!record->counts.defined()) {
        continue;  // not of training
      }
      add_to(counts[layer], record->counts);
      positions = static_cast<double>(record->experts.size(0));
      add_to(balance, or_zero(record->balance, record->counts));
      add_to(z, or_zero(record->z, record->counts));
      if (record->layer->options().capacity_factor > 0) {
        add_to(dropped,
               record->kept.eq(0).logical_and(record->weights.ne(0)).sum().to(at::kFloat) /
                   static_cast<double>(std::max<std::int64_t>(1, record->kept.numel()) * static_cast<std::int64_t>(layers_.size())));
      }
    }
  }
  const auto first = std::find_if(counts.begin(), counts.end(), [](const at::Tensor& t) { return t.defined(); });
  if (first == counts.end()) {
    return;
  }
  for (std::size_t layer = 0; layer < counts.size(); ++layer) {
    runs_here_[layer] = pipeline_ == nullptr || counts[layer].defined();
    counts[layer] = counts[layer].defined() ? counts[layer] : at::zeros_like(*first);
  }
  const at::Tensor now = at::stack(counts);
  const at::Tensor sums = at::stack({balance, z, or_zero(dropped, now)}).to(at::kDouble) * positions;
  counts_ = step_is_over_ ? now : counts_ + now;
  sums_ = step_is_over_ ? sums : sums_ + sums;
  positions_ = step_is_over_ ? positions : positions_ + positions;
  step_is_over_ = false;
}

/// The numbers of the step are those of all ranks.
void MoeBook::add_ranks(Group& data) {
  const at::Tensor sums = at::cat({sums_, at::full({1}, positions_, sums_.options())});
  data.sum(counts_);
  data.sum(sums);
  sums_ = sums.narrow(0, 0, sums_.numel());
  positions_ = sums[-1].item<double>();
}

/// The same of the stages of a pipeline, which have run other layers on the same positions. `counted`: whether this one has experts.
void MoeBook::add_stages(bool counted) {
  if (layers_.empty()) {
    return;
  }
  const std::int64_t experts = layers_.front()->options().experts;
  if (!counted) {
    counts_ = at::zeros({static_cast<std::int64_t>(layers_.size()), experts}, at::kLong);
    sums_ = at::zeros({3}, at::kDouble);
    positions_ = 0;
  }
  pipeline_->sum(counts_);
  pipeline_->sum(sums_);
  for (const std::string& told : pipeline_->tell(format("{}", positions_))) {
    positions_ = std::max(positions_, std::stod(told));
  }
}

void MoeBook::end_step(bool updated, double progress, Group* data) {
  const bool counted = !step_is_over_;
  if (!step_is_over_ && data != nullptr && data->size() > 1 && counts_.defined()) {
    add_ranks(*data);
  }
  if (updated && counts_.defined() && (pipeline_ == nullptr || counted)) {
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      if (runs_here_[i]) {
        layers_[i]->router().rebalance(counts_[static_cast<std::int64_t>(i)], progress);
      }
    }
  }
  if (pipeline_ != nullptr) {
    add_stages(counted);
  }
  step_is_over_ = true;
}

std::vector<std::pair<std::string, double>> MoeBook::metrics() const {
  if (!counts_.defined()) {
    return {};
  }
  const at::Tensor load = counts_.to(at::kDouble);                             // (layers, E)
  const at::Tensor share = load / load.sum(1, /*keepdim=*/true).clamp_min(1);  // of a layer's assignments
  const at::Tensor entropy = at::special_entr(share).sum(1).mean() / std::log(std::max<double>(2, static_cast<double>(load.size(1))));
  const at::Tensor sums = sums_ / std::max(1.0, positions_);
  const at::Tensor read = at::stack({sums[0], sums[1], sums[2], load.min(), load.max(), share.max() * load.size(1), entropy}).to(at::kCPU);
  const auto* const numbers = read.const_data_ptr<double>();
  std::vector<std::pair<std::string, double>> out{
      {row_key::moe_aux_loss, numbers[0]},
      {row_key::moe_router_z_loss, numbers[1]},
      {row_key::moe_balance, numbers[4] > 0 ? numbers[3] / numbers[4] : 0},
      {row_key::moe_max_load, numbers[5]},
      {row_key::moe_load_entropy, numbers[6]},
  };
  if (layers_.front()->options().capacity_factor > 0) {
    out.emplace_back(row_key::moe_dropped, numbers[2]);
  }
  return out;
}

}  // namespace kf
