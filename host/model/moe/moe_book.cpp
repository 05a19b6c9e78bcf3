#include "model/moe/moe_book.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "metrics/names/names.h"
#include "parallel/group.h"

namespace kf {
namespace {

at::Tensor zero_like(const at::Tensor& counts) { return at::zeros({}, counts.options().dtype(at::kFloat)); }

at::Tensor or_zero(const at::Tensor& value, const at::Tensor& counts) { return value.defined() ? value.detach() : zero_like(counts); }

void add_to(at::Tensor& sum, const at::Tensor& term) { sum = sum.defined() ? sum + term : term; }

}  // namespace

MoeBook::MoeBook(const Module& model) { collect(model); }

void MoeBook::collect(const Module& module) {
  for (const auto& [name, child] : module.children()) {
    if (auto layer = std::dynamic_pointer_cast<MoeLayer>(child)) {
      layers_.push_back(std::move(layer));
    } else {
      collect(*child);
    }
  }
}

/// For each layer the shares (E) of the assignments of its last forward on all ranks; undefined where it had none.
std::vector<at::Tensor> MoeBook::shares_of_all(Group& data) const {
  std::vector<at::Tensor> out(layers_.size()), counts;
  for (const auto& layer : layers_) {
    if (layer->last().counts.defined()) {
      counts.push_back(layer->last().counts);
    }
  }
  if (counts.empty()) {
    return out;
  }
  const at::Tensor all = at::cat(counts);
  data.sum(all);
  std::int64_t at = 0;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    if (const at::Tensor& own = layers_[i]->last().counts; own.defined()) {
      const at::Tensor sum = all.narrow(0, at, own.numel()).to(at::kFloat);
      out[i] = sum / sum.sum();
      at += own.numel();
    }
  }
  return out;
}

AuxLosses MoeBook::losses(Group* data) const {
  AuxLosses losses;
  const bool shared = data != nullptr && data->size() > 1;
  const std::vector<at::Tensor> shares =
      shared && at::GradMode::is_enabled() ? shares_of_all(*data) : std::vector<at::Tensor>(layers_.size());
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const auto& layer = layers_[i];
    const MoeRecord& last = layer->last();
    if (const double weight = layer->router().balance_weight(); last.balance.defined() && weight != 0) {
      const bool of_all = shares[i].defined() && last.mean_scores.defined();
      add_to(losses.balance, (of_all ? (shares[i] * last.mean_scores).sum() * last.balance_factor : last.balance) * weight);
    }
    if (last.extra.defined()) {
      add_to(losses.balance, last.extra);
    }
    if (const double weight = layer->options().z_weight; last.z.defined() && weight != 0) {
      add_to(losses.router_z, last.z * weight);
    }
  }
  return losses;
}

void MoeBook::end_micro() {
  if (layers_.empty()) {
    return;
  }
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> counts;
  at::Tensor balance, z, dropped;
  double positions = 0;
  for (const auto& layer : layers_) {
    const MoeRecord& last = layer->last();
    if (!last.counts.defined()) {  // not part of this forward
      counts.emplace_back();
      continue;
    }
    counts.push_back(last.counts);
    positions = static_cast<double>(last.experts.size(0));
    add_to(balance, or_zero(last.balance, last.counts));
    add_to(z, or_zero(last.z, last.counts));
    if (layer->options().capacity_factor > 0) {
      add_to(dropped, last.kept.eq(0).logical_and(last.weights.ne(0)).sum().to(at::kFloat) /
                          static_cast<double>(std::max<std::int64_t>(1, last.kept.numel()) * static_cast<std::int64_t>(layers_.size())));
    }
    layer->forget();  // and with it the graph
  }
  const auto first = std::find_if(counts.begin(), counts.end(), [](const at::Tensor& t) { return t.defined(); });
  if (first == counts.end()) {
    return;
  }
  for (at::Tensor& layer : counts) {
    layer = layer.defined() ? layer : at::zeros_like(*first);
  }
  const at::Tensor now = at::stack(counts);
  const at::Tensor sums = at::stack({balance, z, or_zero(dropped, now)}).to(at::kDouble) * positions;
  counts_ = step_is_over_ ? now : counts_ + now;
  sums_ = step_is_over_ ? sums : sums_ + sums;
  positions_ = step_is_over_ ? positions : positions_ + positions;
  step_is_over_ = false;
}

void MoeBook::drop_micro() {
  for (const auto& layer : layers_) {
    layer->forget();
  }
}

/// The numbers of the step are those of all ranks.
void MoeBook::add_ranks(Group& data) {
  const at::Tensor sums = at::cat({sums_, at::full({1}, positions_, sums_.options())});
  data.sum(counts_);
  data.sum(sums);
  sums_ = sums.narrow(0, 0, sums_.numel());
  positions_ = sums[-1].item<double>();
}

void MoeBook::end_step(bool updated, double progress, Group* data) {
  if (!step_is_over_ && data != nullptr && data->size() > 1 && counts_.defined()) {
    add_ranks(*data);
  }
  if (updated && counts_.defined()) {
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      layers_[i]->router().rebalance(counts_[static_cast<std::int64_t>(i)], progress);
    }
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
