// H5, H6, H8: what a token weighs, whatever the layout of the batch.

#include <ATen/ATen.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "support/tiny.h"
#include "train/eval/evaluate.h"

namespace kf::cases {
using namespace kf::test;
namespace {

/// The label of a position is its loss: known numbers through the real update.
class LabelLoss final : public Loss {
 public:
  at::Tensor sum(const at::Tensor& logits, const at::Tensor& labels) const override {
    return at::where(labels.ne(kIgnore), labels, 0).to(at::kFloat).sum() + 0 * logits.sum();
  }
};

/// `valid` labels in each row, the rest ignored.
at::Tensor labels_with(const std::vector<std::int64_t>& valid, std::int64_t length) {
  at::Tensor labels = random_tokens(static_cast<std::int64_t>(valid.size()), length, 5);
  for (std::size_t row = 0; row < valid.size(); ++row) {
    labels[static_cast<std::int64_t>(row)].narrow(0, valid[row], length - valid[row]).fill_(kIgnore);
  }
  return labels;
}

struct Outcome {
  StepResult result;
  std::vector<at::Tensor> gradients;
};

Outcome update(std::int64_t batch_size, std::int64_t accumulation, const std::vector<std::int64_t>& valid, double z_weight,
               const std::string& loss_fn = "cross_entropy") {
  config::Config config = tiny_config();
  config.train.batch_size = batch_size;
  config.train.grad_accum_steps = accumulation;
  config.train.z_loss_weight = z_weight;
  config.train.loss_fn = loss_fn;
  config.train.ce_chunk_size = 7;
  Bench bench(config);
  FixedLoader data(random_tokens(4, 32, 3), labels_with(valid, 32), batch_size);
  Outcome out;
  out.result = bench.step(data, 0, 0.0, [&](const StepResult&) {
    for (const ParameterPtr& parameter : bench.model->parameters()) {
      out.gradients.push_back(parameter->gradient().clone());
    }
  });
  return out;
}

}  // namespace

TEST_CASE("loss: micro-batches weigh by their counted tokens, so token losses 1 1 1 and 5 average to 2", "[cases][H5]") {
  config::Config config = tiny_config();
  config.train.batch_size = 1;
  config.train.grad_accum_steps = 2;
  Bench bench(config);
  bench.loss = std::make_unique<LabelLoss>();
  bench.make_stepper();
  at::Tensor labels = at::full({2, 3}, kIgnore, at::kLong);
  labels[0].fill_(1);
  labels[1][0] = 5;
  FixedLoader data(random_tokens(2, 3, 1), labels, 1);
  CHECK(bench.step(data, 0, 0.0).ce == Approx(2.0));
}

TEST_CASE("loss: four sequences with 3, 1, 32 and 0 labels give the same loss and gradients in every layout", "[cases][H5]") {
  const std::string loss_fn = GENERATE("cross_entropy", "chunked_cross_entropy");
  const double z_weight = GENERATE(0.0, 1e-3);
  const std::vector<std::int64_t> valid = GENERATE(std::vector<std::int64_t>{3, 1, 32, 0}, std::vector<std::int64_t>{0, 0, 0, 1},
                                                   std::vector<std::int64_t>{32, 32, 32, 32}, std::vector<std::int64_t>{0, 7, 0, 31});
  CAPTURE(loss_fn, z_weight, valid);
  const Outcome whole = update(4, 1, valid, z_weight, loss_fn);
  REQUIRE(whole.result.skipped.empty());
  for (const auto& [batch_size, accumulation] : {std::pair{2, 2}, std::pair{1, 4}}) {
    CAPTURE(batch_size, accumulation);
    const Outcome split = update(batch_size, accumulation, valid, z_weight, loss_fn);
    CHECK(split.result.loss == Approx(whole.result.loss).epsilon(1e-6));
    CHECK(split.result.grad_norm == Approx(whole.result.grad_norm).epsilon(1e-6));
    CHECK(split.result.counted == whole.result.counted);
    REQUIRE(split.gradients.size() == whole.gradients.size());
    for (std::size_t i = 0; i < whole.gradients.size(); ++i) {
      CHECK((split.gradients[i] - whole.gradients[i]).abs().max().item<double>() <= 1e-6);
    }
  }
}

TEST_CASE("loss: an update without a single label changes no weight and no moment", "[cases][H6]") {
  config::Config config = tiny_config();
  config.train.grad_accum_steps = 2;
  config.train.z_loss_weight = 1e-3;
  Bench bench(config);
  FixedLoader good(random_tokens(4, 32, 3), random_tokens(4, 32, 4), 2);
  bench.step(good, 0, 1e-2);  // moments that could change
  const std::vector<at::Tensor> before = bench.masters();
  std::vector<at::Tensor> moments;
  for (const auto& [name, tensor] : bench.optimizer->state().tensors) {
    moments.push_back(tensor.clone());
  }

  FixedLoader empty(random_tokens(4, 32, 3), at::full({4, 32}, kIgnore, at::kLong), 2);
  const StepResult result = bench.step(empty, 1, 1e-2);
  CHECK_FALSE(result.skipped.empty());
  CHECK(std::isfinite(result.loss));
  CHECK(bitwise_equal(bench.masters(), before));
  std::vector<at::Tensor> after;
  for (const auto& [name, tensor] : bench.optimizer->state().tensors) {
    after.push_back(tensor);
  }
  CHECK(bitwise_equal(after, moments));
}

TEST_CASE("loss: the reported cross entropy does not contain the z-loss", "[cases][H8]") {
  const std::string loss_fn = GENERATE("cross_entropy", "chunked_cross_entropy");
  CAPTURE(loss_fn);
  const std::vector<std::int64_t> valid{3, 1, 32, 0};
  const StepResult without = update(4, 1, valid, 0.0, loss_fn).result;
  const StepResult with = update(4, 1, valid, 1e-2, loss_fn).result;
  CHECK(with.ce == without.ce);
  CHECK(without.z_loss == 0.0);
  CHECK(with.z_loss > 0.0);
  CHECK(with.loss == Approx(with.ce + with.z_loss));
}

TEST_CASE("loss: evaluation is cross entropy over all counted tokens, whatever z-loss, accumulation and batch size", "[cases][H7]") {
  const std::vector<std::int64_t> valid{3, 1, 32, 0};
  const auto loss_of = [&](std::int64_t batch_size, std::int64_t accumulation, double z_weight) {
    config::Config config = tiny_config();
    config.train.grad_accum_steps = accumulation;
    config.train.z_loss_weight = z_weight;
    Bench bench(config);
    FixedLoader data(random_tokens(4, 32, 3), labels_with(valid, 32), batch_size);
    return evaluate(*bench.model, *bench.optimizer, data, {}, 0).loss;
  };
  const double expected = loss_of(4, 1, 0.0);
  CHECK(expected == Approx(update(4, 1, valid, 0.0).result.ce).epsilon(1e-6));
  CHECK(loss_of(4, 4, 0.0) == expected);
  CHECK(loss_of(4, 7, 1e-2) == expected);
  CHECK(loss_of(2, 1, 0.0) == Approx(expected).epsilon(1e-6));
  CHECK(loss_of(1, 4, 1e-2) == Approx(expected).epsilon(1e-6));
}

}  // namespace kf::cases
