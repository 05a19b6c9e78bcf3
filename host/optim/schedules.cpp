#include "optim/schedules.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numbers>
#include <utility>
#include <vector>

#include "config/plan/budget.h"
#include "config/plan/cycles.h"
#include "core/error.h"

namespace kf {
namespace {

/// Steps of a cycle: `begin` is its first, `start` the factor from which its warm-up rises.
struct Cycle {
  std::int64_t begin = 0;
  std::int64_t length = 0;
  std::int64_t warmup = 0;
  std::int64_t stable = 0;
  std::int64_t decay = 0;  // <= 0: stays at 1
  double start = 0;
};

/// The decay from 1 to the floor: p runs from 0 to 1, t counts the steps since the peak.
using Decay = std::function<double(double p, double t, const Cycle& cycle)>;

double cosine(double p, double m) { return m + 0.5 * (1 - m) * (1 + std::cos(std::numbers::pi * p)); }
double linear(double p, double m) { return 1 - (1 - m) * p; }
double square_root(double p, double m) { return m + (1 - m) * std::sqrt(1 - p); }

class CyclicSchedule final : public Schedule {
 public:
  /// `shift` is 1 with inclusive endpoints.
  CyclicSchedule(std::vector<Cycle> cycles, Decay decay, std::int64_t shift)
      : cycles_(std::move(cycles)), decay_(std::move(decay)), shift_(shift) {
    for (std::size_t i = 1; i < cycles_.size(); ++i) {
      cycles_[i].start = within(cycles_[i - 1], cycles_[i - 1].length);
    }
  }

  double factor(std::int64_t step) const override {
    const auto later = std::find_if(cycles_.begin() + 1, cycles_.end(), [step](const Cycle& cycle) { return cycle.begin > step; });
    const Cycle& cycle = *(later - 1);
    return within(cycle, step - cycle.begin + shift_);
  }

 private:
  double within(const Cycle& cycle, std::int64_t s) const {
    if (s < cycle.warmup) {
      const double risen = static_cast<double>(s) / static_cast<double>(cycle.warmup);
      return cycle.start == 0 ? risen : cycle.start + (1 - cycle.start) * risen;
    }
    const std::int64_t past = s - cycle.warmup - cycle.stable;
    if (past < 0 || cycle.decay <= 0) {
      return 1.0;
    }
    const auto t = static_cast<double>(past);
    return decay_(std::min(1.0, t / static_cast<double>(cycle.decay)), t, cycle);
  }

  std::vector<Cycle> cycles_;
  Decay decay_;
  std::int64_t shift_;
};

class EndingSchedule final : public Schedule {
 public:
  EndingSchedule(std::unique_ptr<Schedule> inner, std::int64_t total, bool zero) : inner_(std::move(inner)), total_(total), zero_(zero) {}
  double factor(std::int64_t step) const override {
    if (step < total_) {
      return inner_->factor(step);
    }
    return zero_ ? 0.0 : inner_->factor(total_);
  }

 private:
  std::unique_ptr<Schedule> inner_;
  std::int64_t total_;
  bool zero_;
};

std::vector<Cycle> cycles_of(const config::SchedulerConfig& c, const std::string& name, std::int64_t total) {
  const std::vector<std::int64_t> begins = config::cycle_starts(c, total);
  std::vector<Cycle> out;
  for (std::size_t i = 0; i < begins.size(); ++i) {
    Cycle cycle;
    cycle.begin = begins[i];
    cycle.length = (i + 1 < begins.size() ? begins[i + 1] : total) - begins[i];
    cycle.warmup = (i == 0 ? c.warmup_steps : c.rewarmup_steps).of(cycle.length);
    cycle.stable = name == "wsd" ? c.stable_steps.value_or(0).of(cycle.length) : 0;
    const std::int64_t rest = cycle.length - cycle.warmup - cycle.stable;
    cycle.decay = c.decay_steps ? std::max<std::int64_t>(1, c.decay_steps->of(cycle.length)) : rest;
    if (name == "rex") {
      cycle.decay = std::max<std::int64_t>(cycle.decay, 1);
    } else if (name == "constant" || name == "none") {
      cycle.decay = 0;
      cycle.warmup = name == "none" ? 0 : cycle.warmup;
    }
    out.push_back(cycle);
  }
  return out;
}

Decay inverse_root(double m, double timescale) {
  return [m, timescale](double, double t, const Cycle& cycle) {
    const double s = std::max(t + static_cast<double>(cycle.warmup), 1.0);
    return std::max(m, std::min(1.0, 1 / std::sqrt(s / timescale)));
  };
}

Decay inverse(double m) {
  return [m](double, double t, const Cycle& cycle) {
    return std::max(m, 1 / ((1 / m - 1) * std::max(t, 1.0) / static_cast<double>(cycle.decay) + 1));
  };
}

Decay power_law(const config::SchedulerConfig& c, const PowerScale& scale) {
  return [a = c.power_a, b = c.power_b, scale](double, double t, const Cycle&) {
    if (t <= 0) {
      return 1.0;
    }
    return std::min(1.0, scale.sequences * a * std::pow(t * scale.sequences * scale.seq_len, b) / scale.peak);
  };
}

Decay shape_of(const std::string& name, const config::SchedulerConfig& c, const PowerScale& power) {
  const double m = c.min_lr_ratio;
  const std::string shape = name == "wsd" ? c.wsd_decay_type : name;
  const std::map<std::string, Decay> shapes{
      {"cosine", [m](double p, double, const Cycle&) { return cosine(p, m); }},
      {"linear", [m](double p, double, const Cycle&) { return linear(p, m); }},
      {"sqrt", [m](double p, double, const Cycle&) { return square_root(p, m); }},
      {"rex", [m, alpha = c.rex_alpha](double p, double, const Cycle&) { return std::max(m, std::pow(1 - p, alpha)); }},
      {"inv_sqrt", inverse_root(m, c.inv_sqrt_timescale)},
      {"inv", inverse(m)},
      {"power", power_law(c, power)},
      {"constant", Decay()},
      {"none", Decay()}};
  const auto found = shapes.find(shape);
  KF_CHECK(found != shapes.end(), Code::other, "'{}' is no native schedule", name);
  return found->second;
}

}  // namespace

std::unique_ptr<Schedule> make_native_schedule(const std::string& name, const config::SchedulerConfig& c, std::int64_t max_steps,
                                               const PowerScale& power) {
  return std::make_unique<CyclicSchedule>(cycles_of(c, name, config::schedule_length(c, max_steps)), shape_of(name, c, power),
                                          c.endpoints == "inclusive" ? 1 : 0);
}

std::unique_ptr<Schedule> ending(std::unique_ptr<Schedule> inner, const config::SchedulerConfig& c) {
  if (!c.total_steps) {
    return inner;
  }
  return std::make_unique<EndingSchedule>(std::move(inner), *c.total_steps, c.after == "zero");
}

}  // namespace kf
