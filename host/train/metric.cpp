#include "train/metric.h"

#include <utility>

namespace kf {
namespace {

class MetricHook final : public Hook {
 public:
  MetricHook(std::string name, std::unique_ptr<Metric> metric, std::int64_t log_interval)
      : name_("metric " + std::move(name)), metric_(std::move(metric)), every_(metric_->every() > 0 ? metric_->every() : log_interval) {}

  std::string name() const override { return name_; }
  bool wants(Event event, std::int64_t step) const override { return event == Event::step_end && step % every_ == 0; }
  void call(Event /*event*/, HookContext& context) override { context.log(metric_->compute(context)); }

 private:
  std::string name_;
  std::unique_ptr<Metric> metric_;
  std::int64_t every_;
};

}  // namespace

std::unique_ptr<Hook> metric_hook(std::string name, std::unique_ptr<Metric> metric, std::int64_t log_interval) {
  return std::make_unique<MetricHook>(std::move(name), std::move(metric), log_interval);
}

}  // namespace kf
