#pragma once
// The guard's judgement as a tensor: whether an update may be made is then known on the device, and nobody waits for it.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "config/schema/config.h"

namespace kf {

/// As RecentValues, on the device.
class RecentOnDevice {
 public:
  RecentOnDevice(std::int64_t window, at::Device device);
  /// Takes over what a RecentValues holds, oldest first.
  void set(const std::vector<double>& values);
  /// As RecentValues::spikes, of a 0-dim double: 0-dim bool.
  at::Tensor spikes(const at::Tensor& value, double sigma) const;
  /// Joins the memory where `when` (0-dim bool) is true.
  void add(const at::Tensor& value, const at::Tensor& when);

 private:
  at::Tensor values_;  // (window) fp64, the newest last
  at::Tensor count_;   // 0-dim fp64: of them that hold something
};

class Verdict {
 public:
  Verdict(const config::TrainConfig& train, at::Device device);
  /// The memory of the guard, which has judged every update before the next one.
  void set(const std::vector<double>& losses, const std::vector<double>& norms);
  /// Of the next update by its loss and gradient norm, 0-dim double: 1 where it may be made and 0 where not, 0-dim fp32. Remembers them as
  /// UpdateGuard does.
  at::Tensor judge(const at::Tensor& loss, const at::Tensor& norm);

 private:
  bool spikes_;
  double sigma_;
  RecentOnDevice losses_, norms_;
};

}  // namespace kf
