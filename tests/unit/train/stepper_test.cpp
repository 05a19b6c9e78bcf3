#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "optim/adamw.h"
#include "optim/clip.h"
#include "support/tiny.h"
#include "train/eval/evaluate.h"
#include "train/step/language.h"
#include "train/step/losses.h"
#include "train/step/stepper.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

using namespace kf;
using namespace kf::test;

namespace {

std::vector<at::Tensor> masters(Model& model) {
  std::vector<at::Tensor> copies;
  for (const ParameterPtr& p : model.parameters()) {
    copies.push_back(p->master.detach().clone());
  }
  return copies;
}

bool same(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!a[i].equal(b[i])) {
      return false;
    }
  }
  return a.size() == b.size();
}

/// One training step of a fresh tiny model over `batches` as micro-batches.
struct Run {
  explicit Run(std::vector<Batch> batches, at::ScalarType compute = at::kFloat, double z = 0)
      : accumulate(static_cast<std::int64_t>(batches.size())), loader(std::move(batches)), objective(loss, {z}) {
    model = tiny_model(tiny_config(), 1, compute);
    optimizer = std::make_unique<AdamW>(decay_groups(model->parameters(), 0.1), AdamWOptions{});
    stepper = std::make_unique<Stepper>(*model, *optimizer, objective, StepperOptions{accumulate, 1.0, at::kCPU});
  }
  StepResult step(const Stepper::Callbacks& callbacks = {}) { return stepper->run(loader, 0, 1e-2, callbacks); }

  std::int64_t accumulate;
  FixedLoader loader;
  CrossEntropy loss;
  Language objective;
  std::shared_ptr<Model> model;
  std::unique_ptr<AdamW> optimizer;
  std::unique_ptr<Stepper> stepper;
};

/// Four rows of 8 tokens with 3, 1, 8 and 0 labels that count.
Batch uneven() {
  const at::Tensor tokens = random_tokens(4, 8, 11);
  at::Tensor labels = at::full({4, 8}, kIgnore, at::kLong);
  const at::Tensor drawn = random_tokens(4, 8, 12);
  const std::vector<std::int64_t> counts{3, 1, 8, 0};
  for (std::int64_t row = 0; row < 4; ++row) {
    labels[row].narrow(0, 0, counts[static_cast<std::size_t>(row)]).copy_(drawn[row].narrow(0, 0, counts[static_cast<std::size_t>(row)]));
  }
  return make_batch(tokens, labels);
}

std::vector<Batch> split(const Batch& batch, std::int64_t parts) {
  std::vector<Batch> out;
  const std::int64_t rows = batch.tokens.size(0) / parts;
  for (std::int64_t i = 0; i < parts; ++i) {
    out.push_back(make_batch(batch.tokens.narrow(0, i * rows, rows), batch.labels.narrow(0, i * rows, rows)));
  }
  return out;
}

}  // namespace

TEST_CASE("step: micro-batches weigh by their counted tokens", "[stepper]") {
  const double z = GENERATE(0.0, 1e-2);
  Run whole({uneven()}, at::kFloat, z);
  const StepResult expected = whole.step();
  for (const std::int64_t parts : {2, 4}) {
    CAPTURE(parts, z);
    Run run(split(uneven(), parts), at::kFloat, z);
    const StepResult result = run.step();
    CHECK(result.ce == Approx(expected.ce).epsilon(1e-6));
    CHECK(result.z_loss == Approx(expected.z_loss).margin(1e-7));
    CHECK(result.grad_norm == Approx(expected.grad_norm).epsilon(1e-5));
    CHECK(result.counted == 12);
    CHECK(result.tokens == 32);
  }
}

TEST_CASE("step: the cross entropy is the same whatever the z-loss", "[stepper]") {
  Run plain({uneven()});
  Run with_z({uneven()}, at::kFloat, 1e-2);
  const StepResult a = plain.step();
  const StepResult b = with_z.step();
  CHECK(a.ce == b.ce);
  CHECK(a.z_loss == 0);
  CHECK(b.z_loss > 0);
  CHECK(b.loss == b.ce + b.z_loss);
}

TEST_CASE("step: beside a loss of one's own the cross entropy stays the cross entropy", "[stepper]") {
  struct Ten final : Loss {
    at::Tensor sum(const at::Tensor& logits, const at::Tensor& labels) const override { return CrossEntropy().sum(logits, labels) * 10; }
    std::string own_name() const override { return "ten"; }
  };
  Run plain(split(uneven(), 2), at::kFloat, 1e-2);
  Run own(split(uneven(), 2), at::kFloat, 1e-2);
  const Ten ten;
  own.objective.use_loss(&ten);
  const StepResult a = plain.step();
  const StepResult b = own.step();
  CHECK(a.extra.empty());
  REQUIRE(find_number(b.extra, "loss_fn/ten") != nullptr);
  CHECK(b.ce == Approx(a.ce).epsilon(1e-6));
  CHECK(*find_number(b.extra, "loss_fn/ten") == Approx(10 * a.ce).epsilon(1e-6));
  CHECK(b.loss == *find_number(b.extra, "loss_fn/ten") + b.z_loss);
  own.objective.use_loss(nullptr);
  CHECK(own.step().extra.empty());
}

TEST_CASE("step: a batch without a single label changes nothing and says so", "[stepper]") {
  const at::Tensor tokens = random_tokens(2, 8, 1);
  Run run({make_batch(tokens, at::full({2, 8}, kIgnore, at::kLong))});
  const auto before = masters(*run.model);
  const StepResult result = run.step();
  CHECK(!result.skipped.empty());
  CHECK_FALSE(result.has_loss());
  CHECK(same(before, masters(*run.model)));
  CHECK(run.optimizer->state().tensors.empty());
}

TEST_CASE("step: a loss or gradient that is not finite changes nothing", "[stepper]") {
  const bool in_loss = GENERATE(true, false);
  Run run({uneven()});
  Stepper::Callbacks callbacks;
  if (in_loss) {
    run.model->parameters().back()->master.detach().fill_(std::numeric_limits<float>::quiet_NaN());
  } else {
    callbacks.micro_end = [&] { run.model->parameters().front()->value.mutable_grad().fill_(std::numeric_limits<float>::infinity()); };
  }
  const auto before = masters(*run.model);
  const StepResult result = run.step(callbacks);
  CHECK(!result.skipped.empty());
  for (std::size_t i = 0; i + 1 < before.size(); ++i) {
    CHECK(before[i].equal(masters(*run.model)[i]));
  }
  for (const ParameterPtr& p : run.model->parameters()) {
    CHECK(!p->gradient().defined());
  }
}

TEST_CASE("step: bf16 gradients are summed in fp32 over the micro-batches", "[stepper]") {
  Run run(split(uneven(), 4), at::kBFloat16);
  bool looked = false;
  Stepper::Callbacks callbacks;
  callbacks.backward_end = [&](const StepResult&) {
    for (const ParameterPtr& p : run.model->parameters()) {
      CHECK(p->gradient().scalar_type() == at::kFloat);
    }
    looked = true;
    return false;
  };
  run.step(callbacks);
  CHECK(looked);
}

TEST_CASE("step: norm, guard and clipping see the gradients that a callback left", "[stepper]") {
  const auto step_with = [](Run& run, double factor, bool told) {
    Stepper::Callbacks callbacks;
    callbacks.backward_end = [&run, factor, told](const StepResult&) {
      for (const ParameterPtr& p : run.model->parameters()) {
        p->gradient().mul_(factor);
      }
      return told;
    };
    return run.step(callbacks);
  };
  Run plain({uneven()});
  const double norm = plain.step().grad_norm;
  const bool told = GENERATE(true, false);  // tensors that were written to are known by their version
  Run larger({uneven()});
  CHECK(step_with(larger, 64, told).grad_norm == 64 * norm);  // powers of two are exact
  Run spoilt({uneven()});
  const std::vector<at::Tensor> before = masters(*spoilt.model);
  CHECK(!step_with(spoilt, std::numeric_limits<double>::quiet_NaN(), told).skipped.empty());
  CHECK(same(before, masters(*spoilt.model)));
}

TEST_CASE("step: gradients can be summed in bf16, of weights of any type", "[stepper]") {
  const at::ScalarType compute = GENERATE(at::kFloat, at::kBFloat16);
  Run wide(split(uneven(), 4), compute);
  Run low(split(uneven(), 4), compute);
  sum_gradients_in(at::kBFloat16, low.model->parameters());
  bool looked = false;
  Stepper::Callbacks callbacks;
  callbacks.backward_end = [&](const StepResult&) {
    for (const ParameterPtr& p : low.model->parameters()) {
      CHECK(p->gradient().scalar_type() == at::kBFloat16);
      CHECK(p->wide_gradient().scalar_type() == at::kFloat);
    }
    looked = true;
    return false;
  };
  const auto before = masters(*low.model);
  const StepResult rounded = low.step(callbacks);
  CHECK(looked);
  CHECK(rounded.skipped.empty());
  CHECK_FALSE(same(before, masters(*low.model)));
  // Each of the four sums is rounded by at most 2^-9 of itself, component by component, so the norm is off by 2^-9 of their norms.
  double norms = 0;
  Stepper::Callbacks watch;
  watch.micro_end = [&] { norms += gradient_norm(wide.model->parameters()).item<double>(); };
  CHECK(rounded.grad_norm == Approx(wide.step(watch).grad_norm).margin(1.05 * norms / 512).epsilon(0));
}

TEST_CASE("bf16: masters keep what the rounded copy cannot", "[stepper]") {
  // 100 updates of 1e-5 on 0.02: plain bf16 would stay at 0.02001953125 (cases H9).
  auto parameter = std::make_shared<Parameter>();
  parameter->name = "w";
  parameter->shape = {2, 2};
  parameter->master = at::full({2, 2}, 0.02, at::kFloat);
  parameter->value = parameter->master.to(at::kBFloat16);
  AdamW optimizer({{{parameter}, 0.0}}, AdamWOptions{});
  for (int i = 0; i < 100; ++i) {
    parameter->set_gradient(at::ones({2, 2}));
    optimizer.step(1e-5);
    parameter->publish();
    parameter->clear_gradient();
  }
  CHECK(parameter->master[0][0].item<float>() == Approx(0.019).epsilon(1e-3));
  CHECK(parameter->value[0][0].item<float>() == Approx(0.019).epsilon(5e-3));
}

TEST_CASE("evaluate: tokens weigh alike, the batch size does not matter, training goes on unchanged", "[eval]") {
  Run run({uneven()});
  FixedLoader whole({uneven()});
  FixedLoader parts(split(uneven(), 4));
  run.model->train(true);
  const EvalResult a = evaluate(*run.model, *run.optimizer, whole, {}, 5);
  const EvalResult b = evaluate(*run.model, *run.optimizer, parts, {}, 5);
  CHECK(a.tokens == 12);
  CHECK(b.loss == Approx(a.loss).epsilon(1e-6));
  CHECK(a.perplexity == Approx(std::exp(a.loss)));
  CHECK(run.model->training());
  FixedLoader none({make_batch(random_tokens(1, 4, 1), at::full({1, 4}, kIgnore, at::kLong))});
  CHECK_FALSE(evaluate(*run.model, *run.optimizer, none, {}, 0).has_loss());
}
