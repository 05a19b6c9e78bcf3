// Updates that run ahead: the verdict is a tensor, and changes nothing of what is trained.

#include <ATen/ATen.h>

#include <deque>
#include <limits>
#include <random>

#include "optim/adamw.h"
#include "support/tiny.h"
#include "train/step/language.h"
#include "train/step/losses.h"
#include "train/step/verdict.h"

#include <catch2/catch.hpp>

namespace kf::test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

config::TrainConfig spiky() {
  config::TrainConfig train;
  train.skip_spikes = true;
  train.skip_window = 8;
  train.skip_sigma = 3;
  return train;
}

at::Tensor number(double value) { return at::full({}, value, at::kDouble); }

/// The cross entropy, or what a poisoned batch has instead: NaN where the first label is 1, a spike where it is 2.
class Poisoned final : public Loss {
 public:
  at::Tensor sum(const at::Tensor& logits, const at::Tensor& labels) const override {
    const auto first = labels[0].item<std::int64_t>();
    return CrossEntropy().sum(logits, labels) * (first == 1 ? kNan : first == 2 ? 1e3 : 1.0);
  }
};

/// Twelve batches, the sixth with NaN, the tenth a spike.
FixedLoader poisoned() {
  std::vector<Batch> batches;
  for (std::int64_t i = 0; i < 12; ++i) {
    at::Tensor labels = random_tokens(2, 8, static_cast<std::uint64_t>(200 + i)).clamp_min(3);
    labels[0][0] = i == 5 ? 1 : i == 9 ? 2 : 3;
    batches.push_back(make_batch(random_tokens(2, 8, static_cast<std::uint64_t>(100 + i)), labels));
  }
  return FixedLoader(std::move(batches));
}

struct Outcome {
  std::vector<StepResult> steps;
  std::vector<at::Tensor> weights;
  std::map<std::string, at::Tensor> moments;
};

Outcome train(std::int64_t ahead) {
  FixedLoader loader = poisoned();
  const auto model = tiny_model(tiny_config());
  AdamW optimizer(decay_groups(model->parameters(), 0.1), {});
  const Poisoned loss;
  Language objective(loss);
  StepperOptions options;
  options.guard = spiky();
  Stepper stepper(*model, optimizer, objective, options);
  CHECK(stepper.why_not_ahead().empty());
  Outcome out;
  std::deque<Launched> under_way;
  const auto settle = [&](std::int64_t most) {
    while (static_cast<std::int64_t>(under_way.size()) > most) {
      out.steps.push_back(stepper.settle(std::move(under_way.front())));
      under_way.pop_front();
    }
  };
  for (std::int64_t step = 0; step < 12; ++step) {
    if (ahead == 0 || step == 7) {  // one between them is read at once
      settle(0);
      out.steps.push_back(stepper.run(loader, step, 1e-2));
    } else {
      under_way.push_back(stepper.launch(loader, step, 1e-2));
      settle(ahead);
    }
  }
  settle(0);
  for (const ParameterPtr& parameter : model->parameters()) {
    out.weights.push_back(parameter->master.detach().clone());
  }
  out.moments = optimizer.state().tensors;
  return out;
}

}  // namespace

TEST_CASE("verdict: it says of every update what the guard says, spikes and numbers that are not finite", "[ahead]") {
  const bool spikes = GENERATE(true, false);
  config::TrainConfig train = spiky();
  train.skip_spikes = spikes;
  UpdateGuard guard(train);
  Verdict verdict(train, at::kCPU);
  std::mt19937 random(7);
  std::normal_distribution<double> noise(0, 0.05);
  int skipped = 0;
  for (std::int64_t step = 0; step < 300; ++step) {
    double loss = 2 + noise(random), norm = 1 + noise(random);
    loss = step % 17 == 5 ? 9 : step % 23 == 6 ? kNan : loss;
    norm = step % 19 == 7 ? 5 : step % 29 == 8 ? kInf : norm;
    if (step % 50 == 0) {  // as a run that goes on
      verdict = Verdict(train, at::kCPU);
      verdict.set(guard.losses(), guard.norms());
    }
    const bool ok = verdict.judge(number(loss), number(norm)).item<float>() != 0;
    CAPTURE(step, loss, norm);
    CHECK(ok == guard.judge(loss, norm, step).skip.empty());
    skipped += ok ? 0 : 1;
  }
  CHECK(skipped > (spikes ? 30 : 15));
}

TEST_CASE("ahead: losses, skips and weights are those of steps that are read at once, to the last bit", "[ahead]") {
  const Outcome expected = train(0), actual = train(GENERATE(1, 2, 12));
  REQUIRE(actual.steps.size() == expected.steps.size());
  for (std::size_t i = 0; i < expected.steps.size(); ++i) {
    const StepResult &a = actual.steps[i], &b = expected.steps[i];
    CAPTURE(i);
    CHECK((a.loss == b.loss || i == 5));
    CHECK((a.grad_norm == b.grad_norm || i == 5));
    CHECK(a.skipped == b.skipped);
    CHECK(a.tokens == b.tokens);
    CHECK(b.skipped.empty() == (i != 5 && i != 9));
  }
  CHECK(bitwise_equal(actual.weights, expected.weights));
  for (const auto& [name, tensor] : expected.moments) {
    CAPTURE(name);
    CHECK(actual.moments.at(name).equal(tensor));
  }
}

TEST_CASE("ahead: where the verdict is 0, AdamW moves neither weights nor state, whatever the gradients hold", "[ahead]") {
  const ParameterPtr weight = free_weight("w", at::arange(6, at::kFloat).view({2, 3}));
  AdamW optimizer({{{weight}, 0.1, true}}, {});
  const auto step = [&](double gradient, double ok) {
    weight->set_gradient(at::full({2, 3}, gradient));
    optimizer.step_with(1e-2, {{}, at::full({}, ok)});
  };
  step(0.5, 1);
  const at::Tensor before = weight->master.detach().clone();
  std::map<std::string, at::Tensor> state;
  for (const auto& [name, tensor] : optimizer.state().tensors) {
    state[name] = tensor.clone();
  }
  step(kNan, 0);
  CHECK(weight->master.equal(before));
  for (const auto& [name, tensor] : optimizer.state().tensors) {
    CAPTURE(name);
    CHECK(tensor.equal(state.at(name)));
  }
  step(0.5, 1);
  CHECK_FALSE(weight->master.equal(before));
}

TEST_CASE("ahead: jobs whose updates the host must know are named", "[ahead]") {
  const auto why = [](const std::function<void(config::Config&)>& change) {
    config::Config config = tiny_config();
    change(config);
    Bench bench(config);
    return bench.stepper->why_not_ahead();
  };
  using Catch::Contains;
  CHECK(why([](auto&) {}).empty());
  CHECK_THAT(why([](auto& c) { c.optimizer.name = "lion"; }), Contains("optimizer"));
  CHECK_THAT(why([](auto& c) { c.optimizer.nesterov = true; }), Contains("optimizer"));
  CHECK_THAT(why([](auto& c) { c.train.mixed_precision = "fp16"; }), Contains("fp16"));
  CHECK_THAT(why([](auto& c) { c.train.on_inf = "abort"; }), Contains("train.on_inf"));
  CHECK_THAT(why([](auto& c) { c.optimizer.qk_clip = true; }), Contains("qk_clip"));
  CHECK_THAT(why([](auto& c) {
               c.model.num_experts = 4;
               c.model.moe_top_k = 2;
             }),
             Contains("routers"));
}

}  // namespace kf::test
