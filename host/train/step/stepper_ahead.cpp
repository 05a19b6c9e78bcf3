// Updates that run ahead of what the host knows: the verdict on them is a tensor, which the optimizer honours.

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "core/error.h"
#include "train/step/stepper.h"

namespace kf {
namespace {

/// On its way to host memory behind all that the device has to do so far, and nothing that it gets later.
at::Tensor on_its_way(const at::Tensor& numbers, std::shared_ptr<c10::Event>& there) {
  if (numbers.is_cpu()) {
    return numbers;
  }
  at::Tensor host = at::empty(numbers.sizes(), numbers.options().device(at::kCPU).pinned_memory(true));
  host.copy_(numbers, /*non_blocking=*/true);
  const c10::impl::VirtualGuardImpl device(numbers.device().type());
  there = std::make_shared<c10::Event>(numbers.device().type());
  there->record(device.getStream(numbers.device()));
  return host;
}

}  // namespace

std::string Stepper::why_not_ahead() const {
  if (options_.outer != nullptr) {
    return "workers exchange what they learned between updates (diloco.interval)";
  }
  if (!optimizer_.takes_verdict()) {
    return "the optimizer needs to be told on the host whether it moves (AdamW without extras does not)";
  }
  if (loss_scale_) {
    return "the loss scale of fp16 follows from each step's gradients";
  }
  if (options_.guard.on_inf == "abort") {
    return "train.on_inf = \"abort\" looks at the gradients of a step whose norm is NaN";
  }
  if (options_.qk_clip_tau > 0) {
    return "optimizer.qk_clip follows every update";
  }
  return model_.follows_updates() ? "routers move their selection biases after every update" : "";
}

Launched Stepper::launch(Loader& loader, std::int64_t step, double lr) {
  Launched out;
  out.step = step;
  const std::vector<Batch> batches = fetch(loader, step, out.result);
  const MicroBatches update{batches, step, count(batches, out.result), scale()};
  if (!out.result.has_loss()) {
    return out;
  }
  auto [sums, norm] = backward(update, {});
  const at::Tensor numbers = numbers_of(sums, norm);
  const at::Tensor means = numbers.to(at::kDouble);
  at::Tensor loss = at::zeros({}, means.options());
  for (std::size_t i = 0; i < sums.terms.size(); ++i) {
    if (sums.terms[i].minimised) {
      loss = loss + means[static_cast<std::int64_t>(i) + 2];
    }
  }
  if (!verdict_) {
    verdict_.emplace(options_.guard, options_.device);
  }
  if (under_way_ == 0) {  // else it has judged updates that the guard has not seen
    verdict_->set(guard_.losses(), guard_.norms());
  }
  const at::Tensor ok = verdict_->judge(loss, means[0]);
  ++under_way_;
  make_update(lr, norm, ok);
  end_step(step, true);
  out.numbers = on_its_way(at::cat({numbers, ok.view({1})}), out.there);
  out.terms = std::move(sums.terms);
  return out;
}

StepResult Stepper::settle(Launched launched) {
  StepResult result = std::move(launched.result);
  if (!launched.numbers.defined()) {
    return result;
  }
  if (launched.there != nullptr) {
    launched.there->synchronize();
  }
  --under_way_;
  read(launched.numbers, launched.terms, result);
  judge(launched.step, /*overflowed=*/false, result);
  const bool made = launched.numbers.const_data_ptr<float>()[launched.numbers.numel() - 1] != 0;
  if (made != result.skipped.empty()) {  // a number at the border of a spike, where sums round in another order
    result.skipped = made ? "" : "the device judged it to be a spike";
  }
  return result;
}

}  // namespace kf
