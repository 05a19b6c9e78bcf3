// The loss that takes the hidden state (kernels/linear_loss): a model trains with it as with logits.

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "support/tiny.h"

#include <catch2/catch.hpp>

namespace kf::test {

TEST_CASE("fused loss: a model's logits are of the type that model.logits_dtype says", "[loss]") {
  const auto logits = [](const char* type) {
    config::Config config = tiny_config();
    config.model.logits_dtype = type;
    const auto model = tiny_model(config, 1, at::kBFloat16);
    ForwardContext context;
    const at::NoGradGuard no_grad;
    return model->forward(random_tokens(1, 8, 3), context);
  };
  CHECK(logits("cast").scalar_type() == at::kBFloat16);
  CHECK(logits("compute").scalar_type() == at::kBFloat16);
  const at::Tensor wide = logits("fp32");
  CHECK(wide.scalar_type() == at::kFloat);
  CHECK(relative_difference(wide, logits("cast").to(at::kFloat)) < 0.00390625);  // one rounding of 2^-9, by the norm
}

TEST_CASE("fused loss: a model trains with it as with all logits, fused or plain", "[loss]") {
  const bool tied = GENERATE(true, false);
  const at::ScalarType compute = GENERATE(at::kFloat, at::kBFloat16);
  FixedLoader data(random_tokens(8, 32, 3), random_tokens(8, 32, 4), 2);
  const auto train = [&](const std::string& loss, bool fused) {
    config::Config config = tiny_config();
    config.model.tie_embeddings = tied;
    config.model.final_logit_softcap = 5;
    config.model.logit_scale = 2;
    config.train.loss_fn = loss;
    config.train.ce_chunk_size = 7;
    config.train.z_loss_weight = 1e-3;
    config.train.compile_model = fused;
    config.train.grad_accum_steps = 2;
    Bench bench(config, compute);
    StepResult result;
    for (std::int64_t step = 0; step < 3; ++step) {
      result = bench.step(data, step, 1e-3);
    }
    return result;
  };
  const double tolerance = compute == at::kFloat ? 1e-5 : 2e-2;
  const StepResult expected = train("cross_entropy", true);
  for (const bool fused : {true, false}) {
    const StepResult result = train("fused_linear_cross_entropy", fused);
    CHECK(result.ce == Approx(expected.ce).epsilon(tolerance));
    CHECK(result.z_loss == Approx(expected.z_loss).epsilon(tolerance));
    CHECK(result.grad_norm == Approx(expected.grad_norm).epsilon(tolerance));
  }
}

}  // namespace kf::test
