#pragma once
// metrics.watch: norms of gradients, weights, updates, optimizer state and activations as numbers of a row, by layer or by tensor.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "config/schema/config.h"
#include "metrics/sink.h"
#include "model/parameter.h"
#include "optim/optimizer.h"
#include "parallel/world.h"

namespace kf {

/// "layers.3" of "layers.3.attention.q_proj.weight": up to the first number of a name, else its first word.
std::string layer_of(const std::string& name);

/// The numbers of one update at a time. Nothing waits for the device before `take`. On watched steps alone it costs: a copy of all weights
/// with "updates", a pass over what is watched with each.
class Watch {
 public:
  Watch(const config::MetricsConfig& metrics, ParameterList parameters, const Optimizer& optimizer, const World& world = {});

  bool on() const { return !kinds_.empty(); }
  /// Whether the step with this number (from 1) has watched numbers.
  bool due(std::int64_t step) const { return on() && step % interval_ == 0; }

  // In this order within a watched step; what is not asked for costs nothing.
  void begin();
  /// For ForwardContext::observe; empty where activations are not watched.
  std::function<void(const std::string&, const at::Tensor&)> observer();
  /// With all gradients in place, before clipping.
  void gradients();
  void before_update();
  void after_update();

  /// "watch/grads", the norm of everything, and "watch/grads/layers.0", ... Activations are the root of the mean square of what the
  /// embedding ("embed"), each block ("layers.0") and the last norm ("norm") give, over all positions of the step. Updates are there only
  /// where one was made.
  Values take();

 private:
  bool wants(const std::string& kind) const;
  std::string place(const std::string& name) const { return per_param_ ? name : layer_of(name); }
  void add(const std::string& kind, const std::string& place, const at::Tensor& tensor);
  /// Whether what this rank has of the weight counts: of equal copies one does.
  bool counts(const Parameter& parameter) const;
  void add_state();
  /// The sums of all data ranks, by key.
  std::map<std::string, std::pair<double, double>> sums_of_all() const;

  /// Sums of squares, 0-dim fp32, and how many numbers they are of.
  struct Sum {
    at::Tensor squares;
    double count = 0;
  };
  config::Strings kinds_;
  std::int64_t interval_;
  bool per_param_;
  ParameterList parameters_;
  const Optimizer& optimizer_;
  World world_;
  std::vector<at::Tensor> before_;                 // masters
  std::vector<std::pair<std::string, Sum>> sums_;  // by key, in the order of the row
};

}  // namespace kf
