#include "optim/diloco.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <utility>

#include "core/error.h"
#include "model/weight_unit.h"
#include "optim/carried.h"
#include "parallel/meeting.h"

namespace kf {
namespace {

constexpr const char* kExchanges = "diloco.exchanges";
constexpr const char* kMark = "diloco.mark";
constexpr const char* kPending = "diloco.pending";

at::Tensor zeros_like_wide(const at::Tensor& t) { return at::zeros(t.sizes(), t.options().dtype(at::kFloat).requires_grad(false)); }

at::Tensor found(const OptimizerState& state, const std::string& name, const at::Tensor& like) {
  const auto entry = state.tensors.find(name);
  KF_CHECK(
      entry != state.tensors.end() && entry->second.sizes() == like.sizes(), Code::checkpoint,
      "the optimizer state {} '{}': the checkpoint is of a run {}. Go on with the settings that it was saved with, or begin a run from its "
      "weights alone (checkpoint.init_from)",
      entry == state.tensors.end() ? "lacks" : "has another shape of", name,
      entry == state.tensors.end() ? "without diloco.interval, or of other weights" : "with other weights");
  return entry->second;
}

/// The sum over workers of numbers that travel in blocks of int8.
at::Tensor sum_of_blocks(const at::Tensor& difference, Group& workers) {
  const QuantizedBlocks mine = quantize_blocks(difference);
  const std::int64_t numbers = mine.numbers.numel(), blocks = mine.scales.numel();
  const at::Tensor all = at::empty({workers.size() * numbers}, mine.numbers.options());
  const at::Tensor scales = at::empty({workers.size() * blocks}, mine.scales.options());
  workers.gather(all, mine.numbers, std::vector<std::int64_t>(static_cast<std::size_t>(workers.size()), numbers));
  workers.gather(scales, mine.scales, std::vector<std::int64_t>(static_cast<std::size_t>(workers.size()), blocks));
  at::Tensor sum = at::zeros({numbers}, mine.scales.options());
  for (std::int64_t worker = 0; worker < workers.size(); ++worker) {
    sum.add_(widen_blocks({all.narrow(0, worker * numbers, numbers), scales.narrow(0, worker * blocks, blocks)}));
  }
  return sum;
}

}  // namespace

bool is_of_all_workers(const std::string& name) { return name.starts_with(kOuterPrefix) || name.starts_with(kOuterMomentumPrefix); }

std::string worker_name(const std::string& name, std::int64_t worker) {
  return worker == 0 || is_of_all_workers(name) ? name : format("worker{}.{}", worker, name);
}

QuantizedBlocks quantize_blocks(const at::Tensor& numbers) {
  const std::int64_t count = numbers.numel(), blocks = (count + kQuantizedBlock - 1) / kQuantizedBlock;
  at::Tensor padded = at::zeros({blocks * kQuantizedBlock}, numbers.options().dtype(at::kFloat));
  padded.narrow(0, 0, count).copy_(numbers.flatten());
  padded = padded.view({blocks, kQuantizedBlock});
  const at::Tensor scales = padded.abs().amax(1) / 127;
  const at::Tensor rounded = (padded / scales.unsqueeze(1)).nan_to_num(0).round().to(at::kChar);  // 0 / 0: a block of zeros
  return {rounded.flatten().narrow(0, 0, count).contiguous(), scales};
}

at::Tensor widen_blocks(const QuantizedBlocks& blocks) {
  return blocks.numbers.to(at::kFloat) *
         blocks.scales.unsqueeze(1).expand({-1, kQuantizedBlock}).flatten().narrow(0, 0, blocks.numbers.numel());
}

Diloco::Diloco(std::unique_ptr<Optimizer> inner, const ParameterList& parameters, const config::DilocoConfig& config, Group& workers)
    : WrappedOptimizer(std::move(inner)), config_(config), workers_(workers) {
  for (const ParameterPtr& parameter : parameters) {
    if (parameter->trainable && !parameter->buffer) {
      parameters_.push_back(parameter);
    } else if (parameter->buffer) {
      buffers_.push_back(parameter);
    }
  }
}

void Diloco::start() const {
  if (!outer_.empty()) {
    return;
  }
  for (const ParameterPtr& parameter : parameters_) {
    outer_.push_back(parameter->master.detach().to(at::kFloat, /*non_blocking=*/false, /*copy=*/true));
    momentum_.push_back(zeros_like_wide(parameter->master));
  }
}

void Diloco::step(double lr) {
  const at::NoGradGuard no_grad;
  start();
  inner().step(lr);
}

void Diloco::end_update(std::int64_t step) {
  if (step % config_.interval == 0) {
    exchange(step);
  }
}

void Diloco::use(Meeting& meeting, std::int64_t step) {
  meeting_ = &meeting;
  if (pending_) {
    exchange(step);
  }
}

std::int64_t Diloco::present() const { return meeting_ != nullptr ? meeting_->present() : workers_.size(); }

/// Of a difference (fp32), over `workers`.
at::Tensor Diloco::mean(const at::Tensor& difference, Group& workers) const {
  at::Tensor sum;
  if (config_.exchange_dtype == "int8") {
    sum = sum_of_blocks(difference, workers).view(difference.sizes());
  } else {
    sum = difference.to(config_.exchange_dtype == "bf16" ? at::kBFloat16 : at::kFloat).contiguous();
    workers.sum(sum);
    sum = sum.to(at::kFloat);
  }
  return sum / static_cast<double>(workers.size());
}

/// Weights of which something lies here; those of an entry travel together, one behind the other.
std::vector<std::vector<std::size_t>> Diloco::bundles() const {
  constexpr std::int64_t kMost = 8 << 20;  // numbers
  std::vector<std::vector<std::size_t>> out;
  std::int64_t numbers = kMost;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const std::int64_t own = parameters_[i]->part_numel();
    if (own == 0) {
      continue;  // another rank's
    }
    if (out.empty() || numbers + own > kMost) {
      out.emplace_back();
      numbers = 0;
    }
    out.back().push_back(i);
    numbers += own;
  }
  return out;
}

/// What the workers have moved these weights by, on the mean.
at::Tensor Diloco::mean_of(const std::vector<std::size_t>& bundle, Group& workers) const {
  std::vector<at::Tensor> differences;
  for (const std::size_t i : bundle) {
    differences.push_back((outer_[i] - parameters_[i]->master.detach().to(at::kFloat)).flatten());
  }
  return mean(at::cat(differences), workers);
}

/// The outer update of these weights, from which the worker goes on.
void Diloco::move(const std::vector<std::size_t>& bundle, const at::Tensor& all) {
  std::int64_t at = 0;
  for (const std::size_t i : bundle) {
    const at::Tensor master = parameters_[i]->master.detach();
    const at::Tensor moved = all.narrow(0, at, master.numel()).view(master.sizes());
    at += master.numel();
    momentum_[i].mul_(config_.outer_momentum).add_(moved);
    outer_[i].sub_(config_.nesterov ? moved + config_.outer_momentum * momentum_[i] : momentum_[i], config_.outer_lr);
    master.copy_(outer_[i]);
  }
}

/// Buffers of numbers, and their means over `workers`.
std::vector<std::pair<at::Tensor, at::Tensor>> Diloco::buffer_means(Group& workers) const {
  std::vector<std::pair<at::Tensor, at::Tensor>> out;
  for (const ParameterPtr& buffer : buffers_) {
    const at::Tensor kept = buffer->kept().detach();
    if (c10::isFloatingType(kept.scalar_type())) {
      const at::Tensor sum = kept.to(at::kFloat).contiguous().clone();
      workers.sum(sum);
      out.emplace_back(kept, sum / static_cast<double>(workers.size()));
    }
  }
  return out;
}

void Diloco::exchange(std::int64_t step) {
  const at::NoGradGuard no_grad;
  start();  // a worker that has not made an update yet, because its batches had no label
  const std::vector<std::vector<std::size_t>> all = bundles();
  std::vector<at::Tensor> means;  // where workers come and go: nothing moves before all of them are there
  std::vector<std::pair<at::Tensor, at::Tensor>> buffers;
  const auto take_means = [&](Group& there) {
    means.clear();
    for (const std::vector<std::size_t>& bundle : all) {
      means.push_back(mean_of(bundle, there));
    }
    buffers = buffer_means(there);
  };
  if (meeting_ == nullptr) {
    for (const std::vector<std::size_t>& bundle : all) {
      move(bundle, mean_of(bundle, workers_));
    }
    buffers = buffer_means(workers_);
  } else {
    pending_ = !meeting_->hold(progress(step), take_means);
    if (pending_) {
      return;
    }
    mark_ = meeting_->mark();
  }
  ++exchanges_;
  for (std::size_t i = 0; i < means.size(); ++i) {
    move(all[i], means[i]);
  }
  for (const auto& [buffer, value] : buffers) {
    buffer.copy_(value);
  }
  owes_ = meeting_ != nullptr;
  publish(parameters_);
  publish(buffers_);
}

void Diloco::hand_on(const Kept& kept) {
  if (std::exchange(owes_, false)) {
    meeting_->hand_on([&](Group& group) { carry(group, kept); });
  }
}

/// Outer weights, their momentum and buffers, beside what the inner optimizer keeps.
OptimizerState Diloco::shared_state() const {
  OptimizerState state = inner().state();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    state.tensors[kOuterPrefix + parameters_[i]->name] = outer_[i];
    state.tensors[kOuterMomentumPrefix + parameters_[i]->name] = momentum_[i];
  }
  for (const ParameterPtr& buffer : buffers_) {
    state.tensors[kWorkerWeightPrefix + buffer->name] = buffer->kept().detach();
  }
  put_numbers(state);
  return state;
}

std::string Diloco::carry(Group& group, const Kept& kept) {
  const at::NoGradGuard no_grad;
  start();
  const bool gives = group.rank() == 0;
  const OptimizerState state = carried(gives ? shared_state() : OptimizerState(), group);
  std::string told = group.tell(gives ? kept() : "").front();
  if (gives) {
    return told;
  }
  inner().load(state);
  take_outer(state);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    parameters_[i]->master.detach().copy_(outer_[i]);
  }
  for (const ParameterPtr& buffer : buffers_) {
    const at::Tensor own = buffer->kept().detach();
    own.copy_(found(state, kWorkerWeightPrefix + buffer->name, own));
  }
  publish(parameters_);
  publish(buffers_);
  return told;
}

void Diloco::put_numbers(OptimizerState& state) const {
  state.integers[kExchanges] = exchanges_;
  state.integers[kMark] = mark_;
  state.integers[kPending] = pending_ ? 1 : 0;
}

void Diloco::take_outer(const OptimizerState& state) {
  const auto number = [&](const char* name, std::int64_t otherwise) {
    const auto found = state.integers.find(name);
    return found != state.integers.end() ? found->second : otherwise;
  };
  exchanges_ = number(kExchanges, 1);  // of earlier versions: more than none
  mark_ = number(kMark, 0);
  pending_ = number(kPending, 0) != 0;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const std::string& name = parameters_[i]->name;
    if (parameters_[i]->part_numel() == 0) {
      continue;  // another rank's
    }
    outer_[i].copy_(found(state, kOuterPrefix + name, outer_[i]));
    momentum_[i].copy_(found(state, kOuterMomentumPrefix + name, momentum_[i]));
  }
}

OptimizerState Diloco::state() const {
  start();
  OptimizerState state = inner().state();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    state.tensors[kOuterPrefix + parameters_[i]->name] = outer_[i];
    state.tensors[kOuterMomentumPrefix + parameters_[i]->name] = momentum_[i];
  }
  put_numbers(state);
  if (workers_.rank() > 0) {  // those of the first one are the checkpoint's weights
    for (const ParameterList& weights : {parameters_, buffers_}) {
      for (const ParameterPtr& weight : weights) {
        state.tensors[kWorkerWeightPrefix + weight->name] = weight->kept().detach();
      }
    }
  }
  return state;
}

void Diloco::load(const OptimizerState& state) {
  const at::NoGradGuard no_grad;
  inner().load(state);
  outer_.clear();
  momentum_.clear();
  start();
  take_outer(state);
  if (workers_.rank() > 0) {
    for (const ParameterList& weights : {parameters_, buffers_}) {
      for (const ParameterPtr& weight : weights) {
        if (const at::Tensor kept = weight->kept().detach(); weight->part_numel() > 0) {
          kept.copy_(found(state, kWorkerWeightPrefix + weight->name, kept));
        }
      }
      publish(weights);
    }
  }
}

}  // namespace kf
