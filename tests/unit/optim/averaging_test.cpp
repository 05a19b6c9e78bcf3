// Running averages of the weights.

#include <ATen/ATen.h>

#include <cmath>

#include "optim/averaging.h"
#include "support/tiny.h"

#include <catch2/catch.hpp>

namespace kf::test {
namespace {

/// Moves its weight by 1 in every update: a ramp.
class Ramp final : public Optimizer {
 public:
  explicit Ramp(ParameterPtr weight) : weight_(std::move(weight)) {}
  void step(double) override { weight_->master.data().add_(1); }
  OptimizerState state() const override { return {}; }
  void load(const OptimizerState&) override {}

 private:
  ParameterPtr weight_;
};

struct Fixture {
  explicit Fixture(const config::AveragingConfig& config)
      : weight(free_weight("w", at::zeros({2}))), averaged(std::make_unique<Ramp>(weight), {weight}, config) {}
  double average() {
    const WithRunningAverage in(averaged);
    return weight->master[0].item<double>();
  }
  ParameterPtr weight;
  Averaged averaged;
};

}  // namespace

TEST_CASE("average: ema of a ramp has its closed form, and the weights come back bit for bit", "[averaging]") {
  config::AveragingConfig config;
  config.type = "ema";
  config.beta = 0.9;
  Fixture f(config);
  for (int t = 1; t <= 20; ++t) {
    f.averaged.step(1);
    // sum over i of (1 - b) b^(t - i) i
    CHECK(f.average() == Approx(t - 0.9 * (1 - std::pow(0.9, t)) / 0.1).epsilon(1e-5));
    CHECK(f.weight->master[0].item<double>() == t);
  }
}

TEST_CASE("average: ema_decay_sqrt is a uniform mean, then weighs less and less, then stands still", "[averaging]") {
  config::AveragingConfig config;
  config.type = "ema_decay_sqrt";
  config.switch_step = 4;
  config.decay_steps = 8;
  Fixture f(config);
  double weights = 0, sum = 0;
  for (int t = 0; t < 16; ++t) {
    f.averaged.step(1);
    const double weight = t < 4 ? 1 - config.beta : 1 - std::sqrt(std::min(1.0, (t - 4) / 8.0));
    weights += weight;
    sum += weight * (t + 1);
    CAPTURE(t);
    CHECK(f.average() == Approx(sum / weights).epsilon(1e-5));
  }
  const double last = f.average();
  f.averaged.step(1);
  CHECK(f.average() == last);
}

TEST_CASE("average: it survives a restart bit for bit", "[averaging]") {
  config::AveragingConfig config;
  config.type = GENERATE("ema", "ema_decay_sqrt");
  config.switch_step = 3;
  config.decay_steps = 10;
  Fixture straight(config), resumed(config);
  for (int t = 0; t < 5; ++t) {
    straight.averaged.step(1);
  }
  resumed.weight->master.data().copy_(straight.weight->master);
  resumed.averaged.load(straight.averaged.state());
  for (int t = 0; t < 3; ++t) {
    straight.averaged.step(1);
    resumed.averaged.step(1);
  }
  CHECK(straight.average() == resumed.average());
}

}  // namespace kf::test
