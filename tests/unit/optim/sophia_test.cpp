// Sophia-H: its formula, and the estimate of the Hessian's diagonal that it asks the stepper for.

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>

#include "builtins/builtins.h"
#include "core/error.h"
#include "optim/sophia.h"
#include "parallel/world.h"
#include "support/tiny.h"
#include "train/step/curvature.h"

#include <catch2/catch.hpp>

namespace kf::test {
namespace {

const World alone;

/// Asks for every estimate and keeps the last.
struct CurvatureKeeper final : Optimizer {
  void step(double /*lr*/) override {}
  OptimizerState state() const override { return {}; }
  void load(const OptimizerState& /*state*/) override {}
  bool wants_curvature() const override { return true; }
  void take_curvature(const Curvature& curvature) override { last = curvature; }
  Curvature last;
};

using Gradients = std::map<std::string, at::Tensor>;

struct Outcome {
  Curvature curvature;
  Gradients gradients;
};

constexpr std::int64_t kStep = 3;

Outcome run(Bench& bench, FixedLoader& data) {
  CurvatureKeeper keeper;
  StepperOptions options;
  options.batches = config::BatchPlan(bench.config.train, 1);
  options.guard = bench.config.train;
  options.seed = static_cast<std::uint64_t>(bench.config.train.seed);
  if (bench.config.train.mixed_precision == "fp16") {
    options.loss_scale = bench.config.train.loss_scale;
  }
  Outcome out;
  Stepper(*bench.model, keeper, *bench.objective, options).run(data, kStep, 0.0, {{}, [&](const StepResult&) {
                                                                                    for (const ParameterPtr& parameter :
                                                                                         bench.model->parameters()) {
                                                                                      if (parameter->gradient().defined()) {
                                                                                        out.gradients[parameter->name] =
                                                                                            parameter->gradient().clone();
                                                                                      }
                                                                                    }
                                                                                    return false;
                                                                                  }});
  out.curvature = keeper.last;
  return out;
}

FixedLoader one_batch() { return FixedLoader(random_tokens(2, 32, 3), random_tokens(2, 32, 4), 2); }

at::Tensor joined(const std::map<std::string, at::Tensor>& tensors) {
  std::vector<at::Tensor> flat;
  for (const auto& [name, tensor] : tensors) {
    flat.push_back(tensor.flatten().to(at::kDouble));
  }
  return at::cat(flat);
}

double distance(const at::Tensor& a, const at::Tensor& b) {
  return (at::linalg_vector_norm(a - b) / at::linalg_vector_norm(b)).item<double>();
}

void shift(Bench& bench, double by) {
  const at::NoGradGuard no_grad;
  for (const ParameterPtr& parameter : bench.model->parameters()) {
    if (parameter->value.requires_grad()) {
      parameter->value.add_(curvature_signs(*parameter, static_cast<std::uint64_t>(bench.config.train.seed), kStep), by);
    }
  }
}

/// s (g(w + h s) - g(w - h s)) / 2h: what the estimate must be, from first derivatives alone.
at::Tensor by_differences(Bench& bench, FixedLoader& data, const Curvature& known) {
  constexpr double h = 2.5e-4;  // halving it quarters the difference from 2e-3 on: it is the third derivative's, rounding shows in none
  shift(bench, h);
  const Gradients above = run(bench, data).gradients;
  shift(bench, -2 * h);
  const Gradients below = run(bench, data).gradients;
  std::map<std::string, at::Tensor> out;
  for (const ParameterPtr& parameter : bench.model->parameters()) {
    if (known.count(parameter->name) > 0) {
      const at::Tensor signs = curvature_signs(*parameter, static_cast<std::uint64_t>(bench.config.train.seed), kStep);
      out[parameter->name] = (above.at(parameter->name) - below.at(parameter->name)) / (2 * h) * signs;
    }
  }
  return joined(out);
}

}  // namespace

TEST_CASE("sophia_h: momentum over curvature, clipped, by its formula", "[optim]") {
  config::Config config = tiny_config();
  config.optimizer.name = "sophia_h";
  config.optimizer.betas = {0.96, 0.99};
  config.optimizer.eps = 1e-12;
  config.optimizer.weight_decay = 0.1;
  const double lr = 1e-2, gamma = 0.01;
  const Registries registries = native_registries();
  const ParameterPtr weight = free_weight("w", at::randn({3, 4}, at::detail::createCPUGenerator(1)));
  const auto optimizer = make_part(registries.optimizer, "sophia_h", config, registries, decay_groups({weight}, config.optimizer));
  at::Tensor p = weight->master.detach().to(at::kDouble), m = at::zeros_like(p), h = at::zeros_like(p);
  bool clipped = false, free = false;
  for (int t = 0; t < 24; ++t) {
    const at::Tensor g = at::randn({3, 4}, at::detail::createCPUGenerator(100 + static_cast<std::uint64_t>(t))) * 0.02;
    CHECK(optimizer->wants_curvature() == (t % 10 == 0));
    if (t % 10 == 0) {  // large, small and negative curvatures
      const at::Tensor estimate = at::randn({3, 4}, at::detail::createCPUGenerator(static_cast<std::uint64_t>(t) + 1)) * 300;
      optimizer->take_curvature({{"w", estimate}});
      h = 0.99 * h + 0.01 * estimate.to(at::kDouble);
    }
    weight->set_gradient(g.clone());
    optimizer->step(lr);
    m = 0.96 * m + 0.04 * g.to(at::kDouble);
    const at::Tensor u = m / (gamma * h).clamp_min(1e-12);
    clipped = clipped || u.abs().gt(1).any().item<bool>();
    free = free || u.abs().lt(1).any().item<bool>();
    p = p * (1 - lr * 0.1) - lr * u.clamp(-1, 1);
    CAPTURE(t);
    CHECK((weight->master.detach().to(at::kDouble) - p).abs().max().item<double>() < 5e-6);
  }
  CHECK(clipped);
  CHECK(free);
}

TEST_CASE("curvature: the estimate's mean is the diagonal, and one draw is exact where the Hessian is diagonal", "[optim]") {
  const ParameterPtr w = free_weight("w", at::randn({4}, at::detail::createCPUGenerator(1)));
  const at::Tensor root = at::randn({4, 4}, at::detail::createCPUGenerator(2));
  const at::Tensor a = root.matmul(root.t());
  const at::Tensor diagonal = at::tensor({3.0, -2.0, 0.5, 0.0}).to(at::kFloat);
  {
    CurvatureEstimate estimate({w}, 1, 0);
    estimate.add((w->value * w->value * diagonal).sum() / 2);
    CHECK(at::allclose(estimate.take(1, alone).at("w"), diagonal));
  }
  at::Tensor sum = at::zeros({4});
  constexpr int kDraws = 3000;
  for (int draw = 0; draw < kDraws; ++draw) {
    CurvatureEstimate estimate({w}, 1, draw);
    estimate.add(w->value.dot(a.mv(w->value)) / 2 * 8);
    sum += estimate.take(8, alone).at("w");
  }
  const at::Tensor off = (a * a).sum(1) - a.diagonal() * a.diagonal();  // the variance of one draw
  const at::Tensor error = (sum / kDraws - a.diagonal()).abs();
  CHECK((error / (off / kDraws).sqrt()).max().item<double>() < 4);  // standard deviations
}

TEST_CASE("curvature: a number that is not finite spoils the whole estimate, and a loss without second derivatives says so", "[optim]") {
  const ParameterPtr w = free_weight("w", at::zeros({2, 2, 4, 8}));
  CurvatureEstimate spoilt({w}, 1, 0);
  spoilt.add(w->value.abs().pow(1.5).sum());  // the second derivative at 0 is infinite
  CHECK(spoilt.take(1, alone).empty());
  CurvatureEstimate none({w}, 1, 0);
  CHECK_THROWS_WITH(none.add(at::scaled_dot_product_attention(w->value, w->value, w->value).sum()),
                    Catch::Contains("needs second derivatives of the loss") && Catch::Contains("optimizer.name"));
}

TEST_CASE("curvature: of a model's training loss it is what differences of gradients say, whatever pieces are fused", "[optim]") {
  config::Config config = tiny_config();
  config.train.z_loss_weight = 1e-3;
  std::string kind = GENERATE("plain", "fused loss", "recomputed", "experts", "loop of experts", "latent", "softcap", "ahead");
  CAPTURE(kind);
  if (kind == "fused loss") {
    config.train.loss_fn = "fused_linear_cross_entropy";
    config.model.dropout_attn = 0.1;
  } else if (kind == "recomputed") {
    config.train.activation_checkpointing = "full";
    config.model.dropout_resid = 0.1;
  } else if (kind == "experts" || kind == "loop of experts") {
    config.model.num_experts = 4;
    config.model.moe_top_k = 4;  // with fewer, the differences would see choices change
    config.model.moe_aux_loss_weight = 0.01;
    config.model.moe_impl = kind == "experts" ? "grouped" : "loop";
  } else if (kind == "latent") {
    config.model.attention = "mla";
    config.model.mla_kv_rank = 8;
    config.model.mla_nope_dim = 8;
    config.model.mla_rope_dim = 4;
    config.model.mla_v_dim = 8;
  } else if (kind == "softcap") {
    config.model.attn_softcap = 5;
    config.model.qk_norm = true;
  } else if (kind == "ahead") {
    config.model.mtp_layers = 1;
    config.train.mtp_loss_weight = 0.3;
  }
  Bench bench(config);
  FixedLoader data = one_batch();
  const Outcome outcome = run(bench, data);
  REQUIRE(outcome.curvature.size() == outcome.gradients.size());
  CHECK(distance(joined(outcome.curvature), by_differences(bench, data, outcome.curvature)) < 0.01);
}

TEST_CASE("curvature: experts as grouped products have that of experts one after the other", "[optim]") {
  config::Config config = tiny_config();
  config.model.num_experts = 4;
  config.model.moe_top_k = 2;
  config.model.mlp_bias = true;
  FixedLoader data = one_batch();
  Bench grouped(config);
  config.model.moe_impl = "loop";
  Bench loop(config);
  CHECK(distance(joined(run(grouped, data).curvature), joined(run(loop, data).curvature)) < 1e-5);
}

TEST_CASE("curvature: micro-batches add up to one batch of all, and frozen weights have none", "[optim]") {
  config::Config config = tiny_config();
  config.train.frozen = {"layers.0.*"};
  const at::Tensor tokens = random_tokens(4, 32, 3);
  const at::Tensor labels = random_tokens(4, 32, 4);
  labels.narrow(0, 0, 1).fill_(kIgnore);  // counts differ between micro-batches
  FixedLoader halves(tokens, labels, 2), whole(tokens, labels, 4);
  Bench single(config);
  const Outcome at_once = run(single, whole);
  config.train.grad_accum_steps = 2;
  Bench twice(config);
  const Outcome in_two = run(twice, halves);
  CHECK(distance(joined(in_two.curvature), joined(at_once.curvature)) < 1e-5);
  CHECK(at_once.curvature.count("layers.0.attention.q_proj.weight") == 0);
  CHECK(at_once.curvature.count("layers.1.attention.q_proj.weight") == 1);
}

TEST_CASE("curvature: 16-bit computation gives the fp32 estimate as far as its digits go", "[optim]") {
  const bool experts = GENERATE(true, false);
  const auto type = GENERATE(at::kBFloat16, at::kHalf);
  CAPTURE(experts, type);
  config::Config config = tiny_config();
  config.model.num_experts = experts ? 4 : 0;
  Bench wide(config);
  FixedLoader data = one_batch();
  const Outcome reference = run(wide, data);
  config.train.mixed_precision = type == at::kHalf ? "fp16" : "bf16";
  config.train.loss_scale = 1024;
  Bench narrow(config, type);
  const Outcome outcome = run(narrow, data);
  REQUIRE(outcome.curvature.size() == reference.curvature.size());
  for (const auto& [name, tensor] : outcome.curvature) {
    CHECK(tensor.scalar_type() == at::kFloat);
  }
  CHECK(distance(joined(outcome.curvature), joined(reference.curvature)) < (type == at::kHalf ? 0.05 : 0.15));
}

}  // namespace kf::test
