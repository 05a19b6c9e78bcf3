#include "train/loop/metric.h"

#include <utility>

#include "model/own_draws.h"
#include "model/seed.h"

namespace kf {
namespace {

class MetricHook final : public Hook {
 public:
  MetricHook(std::string name, std::unique_ptr<Metric> metric, std::int64_t log_interval, std::uint64_t seed)
      : seed_(seed),
        name_("metric " + std::move(name)),
        metric_(std::move(metric)),
        every_(metric_->every() > 0 ? metric_->every() : log_interval) {}

  std::string name() const override { return name_; }
  bool wants(Event event, std::int64_t step) const override { return event == Event::step_end && step % every_ == 0; }
  /// What it draws is its own: training is the same with it and without, and with any metrics.log_interval.
  void call(Event /*event*/, HookContext& context) override {
    const OwnDraws draws(device_of(context), mixed_seed(seed_, static_cast<std::uint64_t>(context.state.step)), name_);
    context.log(metric_->compute(context));
  }

 private:
  static at::Device device_of(const HookContext& context) {
    const ParameterList parameters = context.model != nullptr ? context.model->parameters() : ParameterList();
    return parameters.empty() || !parameters.front()->value.defined() ? at::Device(at::kCPU) : parameters.front()->value.device();
  }

  std::uint64_t seed_;
  std::string name_;
  std::unique_ptr<Metric> metric_;
  std::int64_t every_;
};

}  // namespace

std::unique_ptr<Hook> metric_hook(std::string name, std::unique_ptr<Metric> metric, std::int64_t log_interval, std::uint64_t seed) {
  return std::make_unique<MetricHook>(std::move(name), std::move(metric), log_interval, seed);
}

}  // namespace kf
