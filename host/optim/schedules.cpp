#include "optim/schedules.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <utility>

#include "core/error.h"

namespace kf {
namespace {

/// The decay from 1 (p = 0) to the floor (p = 1).
using Decay = std::function<double(double p)>;

double cosine(double p, double m) { return m + 0.5 * (1 - m) * (1 + std::cos(std::numbers::pi * p)); }
double linear(double p, double m) { return 1 - (1 - m) * p; }
double square_root(double p, double m) { return m + (1 - m) * std::sqrt(1 - p); }

class WarmupDecay final : public Schedule {
 public:
  struct Spans {
    std::int64_t warmup = 0;
    std::int64_t stable = 0;
    std::int64_t decay = 0;  // <= 0: stays at 1
    std::int64_t shift = 0;  // 1 with inclusive endpoints
  };
  WarmupDecay(const Spans& spans, Decay decay) : spans_(spans), decay_(std::move(decay)) {}

  double factor(std::int64_t step) const override {
    const std::int64_t s = step + spans_.shift;
    if (s < spans_.warmup) {
      return static_cast<double>(s) / static_cast<double>(spans_.warmup);
    }
    const std::int64_t past = s - spans_.warmup - spans_.stable;
    if (past < 0 || spans_.decay <= 0) {
      return 1.0;
    }
    return decay_(std::min(1.0, static_cast<double>(past) / static_cast<double>(spans_.decay)));
  }

 private:
  Spans spans_;
  Decay decay_;
};

Decay wsd_decay(const std::string& type, double m) {
  if (type == "linear") {
    return [m](double p) { return linear(p, m); };
  }
  if (type == "sqrt") {
    return [m](double p) { return square_root(p, m); };
  }
  return [m](double p) { return cosine(p, m); };
}

}  // namespace

std::unique_ptr<Schedule> make_native_schedule(const std::string& name, const config::SchedulerConfig& c, std::int64_t max_steps) {
  const double m = c.min_lr_ratio;
  WarmupDecay::Spans spans;
  spans.warmup = c.warmup_steps;
  spans.shift = c.endpoints == "inclusive" ? 1 : 0;
  spans.stable = name == "wsd" ? c.stable_steps.value_or(0) : 0;
  spans.decay = c.decay_steps.value_or(max_steps - spans.warmup - spans.stable);
  if (name == "cosine") {
    return std::make_unique<WarmupDecay>(spans, [m](double p) { return cosine(p, m); });
  }
  if (name == "linear") {
    return std::make_unique<WarmupDecay>(spans, [m](double p) { return linear(p, m); });
  }
  if (name == "wsd") {
    return std::make_unique<WarmupDecay>(spans, wsd_decay(c.wsd_decay_type, m));
  }
  if (name == "rex") {
    spans.decay = std::max<std::int64_t>(spans.decay, 1);
    return std::make_unique<WarmupDecay>(spans, [m, alpha = c.rex_alpha](double p) { return std::max(m, std::pow(1 - p, alpha)); });
  }
  KF_CHECK(name == "constant" || name == "none", Code::other, "'{}' is no native schedule", name);
  spans.decay = 0;
  spans.warmup = name == "none" ? 0 : spans.warmup;
  return std::make_unique<WarmupDecay>(spans, Decay());
}

}  // namespace kf
