#pragma once
// Running averages of the weights, kept beside them (Izmailov et al. 2018; Levanter's model averaging).

#include <memory>

#include "config/schema/config.h"
#include "optim/wrapped_optimizer.h"

namespace kf {

/// Where a checkpoint keeps the average of the weight NAME: "average.NAME" of optimizer.safetensors.
inline constexpr const char* kAveragePrefix = "average.";

/// An optimizer with an average of what it moves: it begins as the weights before the first update (the initial ones, or those of
/// checkpoint.init_from), and after every update average += share (weights - average).
///   ema              share = 1 - beta
///   ema_decay_sqrt   share = w / sum of all w, where w is 1 - beta before switch_step and then 1 - sqrt(min(1, (t - switch_step) /
///                    decay_steps)): a uniform mean that stands still in the end. t counts updates from 0.
/// Skipped steps make no update, so they count for nothing. Frozen weights have no average.
class Averaged final : public WrappedOptimizer {
 public:
  Averaged(std::unique_ptr<Optimizer> inner, const ParameterList& parameters, const config::AveragingConfig& config);

  void step(double lr) override;
  OptimizerState state() const override;
  void load(const OptimizerState& state) override;

  /// Puts the average in the weights' place (true), and back (false), bit for bit.
  void swap(bool on);

 private:
  void start();
  double share();

  ParameterList parameters_;
  config::AveragingConfig config_;
  std::vector<at::Tensor> averages_;  // fp32, as parameters_
  std::vector<at::Tensor> raw_;       // the weights while the averages are in their place
  std::int64_t updates_ = 0;
  double weight_sum_ = 0;
};

/// The average in the weights' place for as long as one exists.
class WithRunningAverage {
 public:
  explicit WithRunningAverage(Averaged& averaged) : averaged_(averaged) { averaged_.swap(true); }
  ~WithRunningAverage() { averaged_.swap(false); }
  WithRunningAverage(const WithRunningAverage&) = delete;
  WithRunningAverage& operator=(const WithRunningAverage&) = delete;

 private:
  Averaged& averaged_;
};

}  // namespace kf
