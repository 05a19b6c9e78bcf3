#include "train/step/verdict.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace kf {

RecentOnDevice::RecentOnDevice(std::int64_t window, at::Device device)
    : values_(at::zeros({window}, at::TensorOptions(device).dtype(at::kDouble))), count_(at::zeros({}, values_.options())) {}

void RecentOnDevice::set(const std::vector<double>& values) {
  const std::int64_t window = values_.size(0), count = std::min(window, static_cast<std::int64_t>(values.size()));
  const at::Tensor host = at::zeros({window}, at::kDouble);
  std::copy(values.end() - count, values.end(), host.mutable_data_ptr<double>() + (window - count));
  values_ = host.to(values_.device());
  count_ = at::full({}, static_cast<double>(count), values_.options());
}

at::Tensor RecentOnDevice::spikes(const at::Tensor& value, double sigma) const {
  const std::int64_t window = values_.size(0);
  const at::Tensor held = at::arange(window, values_.options()).ge(static_cast<double>(window) - count_);
  const at::Tensor mean = (values_ * held).sum() / count_;
  const at::Tensor deviation = (((values_ - mean).square() * held).sum() / count_).sqrt();
  const auto enough = static_cast<double>(std::max<std::int64_t>(2, window / 2));
  return count_.ge(enough).logical_and(value.gt(mean + deviation.clamp_min(1e-6) * sigma));
}

void RecentOnDevice::add(const at::Tensor& value, const at::Tensor& when) {
  const at::Tensor moved = at::cat({values_.narrow(0, 1, values_.size(0) - 1), value.view({1})});
  values_ = at::where(when, moved, values_);
  count_ = (count_ + when).clamp_max(static_cast<double>(values_.size(0)));
}

Verdict::Verdict(const config::TrainConfig& train, at::Device device)
    : spikes_(train.skip_spikes), sigma_(train.skip_sigma), losses_(train.skip_window, device), norms_(train.skip_window, device) {}

void Verdict::set(const std::vector<double>& losses, const std::vector<double>& norms) {
  if (spikes_) {
    losses_.set(losses);
    norms_.set(norms);
  }
}

at::Tensor Verdict::judge(const at::Tensor& loss, const at::Tensor& norm) {
  const at::Tensor finite = loss.isfinite().logical_and(norm.isfinite());
  at::Tensor good = finite;
  if (spikes_) {
    good = finite.logical_and(losses_.spikes(loss, sigma_).logical_or(norms_.spikes(norm, sigma_)).logical_not());
    losses_.add(loss, finite);
    norms_.add(norm, finite);
  }
  return good.to(at::kFloat);
}

}  // namespace kf
