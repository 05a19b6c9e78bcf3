#include "model/unit_parts.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <utility>

namespace kf {
namespace {

/// The same storage without its history: what is written here is no change that autograd would refuse.
at::Tensor untracked(const at::Tensor& value) { return value.variable_data(); }

at::Tensor notes_of(const std::vector<bool>& here, const at::TensorOptions& options) {
  const at::Tensor notes = at::empty({static_cast<std::int64_t>(here.size())}, at::kFloat);
  std::copy(here.begin(), here.end(), notes.mutable_data_ptr<float>());
  return notes.to(options);
}

}  // namespace

FlatParts::FlatParts(const ParameterList& weights, const Group& shards, at::ScalarType type, std::int64_t notes)
    : rank_(shards.rank()), notes_(notes), options_(weights.front()->master.options().requires_grad(false).dtype(type)) {
  for (std::int64_t rank = 0; rank < shards.size(); ++rank) {
    rows_.push_back(notes);
    for (const ParameterPtr& weight : weights) {
      rows_.back() += weight->rows_of(rank).numel();
    }
    total_ += rows_.back();
  }
}

at::Tensor FlatParts::make(std::int64_t numbers) const { return at::empty({numbers}, options_); }

Gathering::Gathering(ParameterList weights, Group& shards)
    : weights_(std::move(weights)),
      own_(shards.rank()),
      parts_(weights_, shards, weights_.front()->value.scalar_type()),
      all_(parts_.all()),
      mine_(parts_.mine()) {
  const at::NoGradGuard no_grad;
  parts_.each_part(weights_, own_, mine_,
                   [](Parameter& weight, const Range&, const at::Tensor& piece) { piece.copy_(weight.master.detach()); });
  pending_ = shards.begin_gather(all_, mine_, parts_.rows());
}

void Gathering::finish() {
  const at::NoGradGuard no_grad;
  pending_.wait();
  mine_ = at::Tensor();
  parts_.each_rank(all_, [this](std::int64_t rank, const at::Tensor& flat) {
    parts_.each_part(weights_, rank, flat, [](Parameter& weight, const Range& range, const at::Tensor& piece) {
      if (range.numel() > 0) {
        range.of(untracked(weight.value)).copy_(piece);
      }
    });
  });
  all_ = at::Tensor();
}

Reduction::Reduction(ParameterList weights, bool cut, const Adders& adders, at::ScalarType type)
    : weights_(std::move(weights)), cut_(cut), adders_(adders) {
  const at::NoGradGuard no_grad;
  for (const ParameterPtr& weight : weights_) {
    weight->accumulate();
    here_.push_back(weight->local_gradient().defined());
  }
  cut_ ? pack_parts(adders.shards, type) : pack_whole(adders.shards, type);
}

void Reduction::pack_parts(Group& shards, at::ScalarType type) {
  const FlatParts parts(weights_, shards, type, static_cast<std::int64_t>(weights_.size()));
  all_ = parts.all();
  mine_ = parts.mine();
  const at::Tensor notes = notes_of(here_, all_.options());
  parts.each_rank(all_, [&](std::int64_t rank, const at::Tensor& flat) {
    parts.each_part(weights_, rank, flat, [](Parameter& weight, const Range& range, const at::Tensor& piece) {
      const at::Tensor gradient = weight.local_gradient();
      gradient.defined() ? piece.copy_(range.of(gradient)) : piece.zero_();
    });
    parts.notes(flat).copy_(notes);
  });
  for (const ParameterPtr& weight : weights_) {
    weight->clear_local_gradient();
  }
  pending_ = shards.begin_scatter_sum(mine_, all_, parts.rows());
}

void Reduction::pack_whole(Group& shards, at::ScalarType type) {
  std::vector<at::Tensor> rows;
  const at::TensorOptions options = weights_.front()->master.options().requires_grad(false).dtype(type);
  for (const ParameterPtr& weight : weights_) {
    const at::Tensor gradient = weight->local_gradient();
    rows.push_back(gradient.defined() ? gradient.to(type).flatten() : at::zeros({weight->held().numel()}, options));
  }
  rows.push_back(notes_of(here_, options));
  mine_ = at::cat(rows);
  pending_ = shards.begin_sum(mine_);
}

void Reduction::pass_on() {
  pending_.wait();
  all_ = at::Tensor();
  pending_ = adders_.replicas.begin_sum(mine_);
}

/// Of each weight, whether any rank has a gradient. What this rank knows of itself need not be read from the device.
at::Tensor Reduction::any_of(const at::Tensor& notes) const {
  const bool all_here = std::all_of(here_.begin(), here_.end(), [](bool here) { return here; });
  return all_here ? at::ones(notes.sizes(), at::kBool) : notes.to(at::kCPU).gt(0);
}

void Reduction::finish() {
  const at::NoGradGuard no_grad;
  pending_.wait();
  const auto notes = static_cast<std::int64_t>(weights_.size());
  const at::Tensor any = any_of(mine_.narrow(0, mine_.numel() - notes, notes)).contiguous();
  cut_ ? keep_parts(any) : keep_whole(any);
  mine_ = at::Tensor();
}

void Reduction::keep_parts(const at::Tensor& any) {
  std::int64_t at = 0;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    Parameter& weight = *weights_[i];
    const Range range = weight.rows_of(adders_.shards.rank());
    const at::Tensor piece = mine_.narrow(0, at, range.numel()).view(range.size);
    at += range.numel();
    if (range.numel() == 0 || !any.const_data_ptr<bool>()[i]) {
      continue;  // the weight is another rank's, or has no gradient
    }
    if (weight.part_gradient.defined()) {
      weight.part_gradient.add_(piece);
    } else {
      weight.part_gradient = piece.to(weight.sum_type);  // a view of what came, where the types are the same
    }
  }
}

void Reduction::keep_whole(const at::Tensor& any) {
  std::int64_t at = 0;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    Parameter& weight = *weights_[i];
    const std::int64_t numbers = weight.held().numel();
    const at::Tensor piece = mine_.narrow(0, at, numbers);
    at += numbers;
    if (numbers == 0 || !any.const_data_ptr<bool>()[i]) {
      continue;  // the weight is another rank's, or has no gradient
    }
    if (!weight.local_gradient().defined()) {
      weight.zero_gradient();
    }
    weight.local_gradient().copy_(piece.view(weight.held().size));
  }
}

}  // namespace kf
