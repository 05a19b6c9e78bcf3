// The loss that takes the hidden state (kernels/linear_loss): a model trains with it as with logits.

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include "kernels/kernels.h"
#include "kernels/linear_loss/output_head.h"
#include "model/single_threaded_backward.h"
#include "parallel/thread_ranks.h"
#include "support/tiny.h"
#include "train/step/fused_cross_entropy.h"

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

TEST_CASE("fused loss: of a divided head, too, the plain kernels take plain operators", "[loss]") {
  // The graph of plain operators can be differentiated again; the kernel's gradients are numbers.
  const bool plain = GENERATE(true, false);
  run_ranks(2, [&](Group& ranks) {
    const SingleThreadedBackward single;
    const FusedCrossEntropy loss(3, plain ? plain_kernels() : fused_kernels());
    const at::Tensor hidden = at::arange(20, at::kFloat).view({5, 4}).sin().requires_grad_();
    OutputHead head;
    head.weight = (at::arange(24, at::kFloat).view({6, 4}) + 24 * ranks.rank()).cos();
    LossFactors factors;
    factors.vocabulary = &ranks;
    const at::Tensor total = loss.from_hidden(hidden, head, at::arange(5, at::kLong), factors).total;
    const at::Tensor gradient = torch::autograd::grad({total}, {hidden}, {}, /*retain_graph=*/true, /*create_graph=*/true).front();
    const bool again = gradient.requires_grad();
    CHECK(again == plain);
  });
}

}  // namespace kf::test
