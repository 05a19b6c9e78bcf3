// Experts in training: what auxiliary losses weigh, when biases move, what a row of metrics says.

#include <ATen/ATen.h>

#include <limits>
#include <map>

#include "checkpoint/files/weights.h"
#include "metrics/names/names.h"
#include "moe_model.h"
#include "train/eval/evaluate.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

using namespace kf;
using namespace kf::test;

namespace {

struct Update {
  StepResult result;
  std::map<std::string, at::Tensor> gradients;
  std::map<std::string, at::Tensor> buffers;  // after it
  std::map<std::string, double> metrics;
};

std::map<std::string, at::Tensor> buffers_of(Model& model) {
  std::map<std::string, at::Tensor> out;
  for (const ParameterPtr& parameter : model.parameters()) {
    if (parameter->buffer) {
      out[parameter->name] = parameter->master.clone();
    }
  }
  return out;
}

/// One update over 8 sequences in `micros` micro-batches.
Update update(config::Config config, std::int64_t micros) {
  config.train.batch_size = 8 / micros;
  config.train.grad_accum_steps = micros;
  config.train.grad_clip_norm = 1e9;
  Bench bench(config);
  FixedLoader data(random_tokens(8, 32, 3), random_tokens(8, 32, 4), config.train.batch_size);
  Update out;
  out.result = bench.step(data, 0, 1e-3, [&](const StepResult&) {
    for (const ParameterPtr& parameter : bench.model->parameters()) {
      if (parameter->gradient().defined()) {
        out.gradients[parameter->name] = parameter->gradient().clone();
      }
    }
  });
  out.buffers = buffers_of(*bench.model);
  for (const auto& [name, value] : bench.model->metrics()) {
    CHECK(is_row_key(name));
    out.metrics[name] = value;
  }
  return out;
}

config::Config with_router(const std::string& name) {
  config::Config config = moe_config();
  config.model.moe_router = name;
  return config;
}

}  // namespace

TEST_CASE("moe: auxiliary losses weigh the same in one batch and in micro-batches", "[moe][H10]") {
  config::Config config = moe_config();
  config.model.moe_aux_loss_weight = 0;  // a product of two means: not a sum over tokens
  config.model.moe_router_z_loss_weight = 0.1;
  const Update whole = update(config, 1), parts = update(config, 4);
  CHECK(whole.gradients.size() == parts.gradients.size());
  for (const auto& [name, gradient] : whole.gradients) {
    CAPTURE(name);
    CHECK(relative_difference(parts.gradients.at(name), gradient) < (name.find("router") != std::string::npos ? 1e-5 : 1e-4));
  }
  CHECK(parts.result.aux_loss == Approx(whole.result.aux_loss).epsilon(1e-5));
  CHECK(parts.metrics.at("moe/router_z_loss") == Approx(whole.metrics.at("moe/router_z_loss")).epsilon(1e-5));
  CHECK(whole.metrics.at("moe/router_z_loss") * 0.1 == Approx(whole.result.aux_loss).epsilon(1e-5));
  CHECK(parts.metrics.at("moe/expert_balance") == whole.metrics.at("moe/expert_balance"));
}

TEST_CASE("moe: the balance of sequences, each by itself, is the same for every split; that of batches is not", "[moe]") {
  config::Config config = with_router("sigmoid_topk");
  config.model.moe_sequence_aux_loss_weight = 0.5;
  config.model.moe_sequence_aux_scope = "sequence";
  const Update whole = update(config, 1), parts = update(config, 4);
  CHECK(parts.result.aux_loss == Approx(whole.result.aux_loss).epsilon(1e-5));
  const std::string gate = "layers.1.mlp.router.gate.weight";
  CHECK(relative_difference(parts.gradients.at(gate), whole.gradients.at(gate)) < 1e-5);
  CHECK(parts.metrics.at("moe/aux_loss") == Approx(whole.metrics.at("moe/aux_loss")).epsilon(1e-5));
  config.model.moe_sequence_aux_scope = "batch";
  CHECK(update(config, 4).result.aux_loss != Approx(update(config, 1).result.aux_loss).epsilon(1e-5));
}

TEST_CASE("moe: the router's gradient is linear in the weight of an auxiliary loss", "[moe][H11]") {
  const std::string key = GENERATE("balance", "z", "sequence");
  CAPTURE(key);
  const auto router_gradient = [&](double weight) {
    config::Config config = with_router(key == "sequence" ? "sigmoid_topk" : "softmax_topk");
    config.model.moe_aux_loss_weight = key == "balance" ? weight : 0;
    config.model.moe_router_z_loss_weight = key == "z" ? weight : 0;
    config.model.moe_sequence_aux_loss_weight = key == "sequence" ? weight : 0;
    return update(config, 1).gradients.at("layers.1.mlp.router.gate.weight");
  };
  const at::Tensor base = router_gradient(0);
  const at::Tensor small = router_gradient(0.01) - base, large = router_gradient(0.1) - base;
  CHECK(large.abs().max().item<double>() > 1e-6);
  CHECK(relative_difference(small * 10, large) < 1e-2);  // differences of fp32 numbers
}

TEST_CASE("moe: the gradient of an auxiliary loss is the slope of the logged value", "[moe][H11]") {
  config::Config config = moe_config();
  config.model.n_layers = 1;
  const std::string name = "layers.0.mlp.router.gate.weight";
  const at::Tensor tokens = random_tokens(4, 32, 3);
  const auto balance = [&](double nudge, at::Tensor* gradient) {
    const auto model = tiny_model(config);
    for (const ParameterPtr& parameter : model->parameters()) {
      if (parameter->name == name) {
        parameter->master.detach().select(0, 1).add_(nudge * at::linspace(-1, 1, 32));
      }
    }
    ForwardResults results;
    ForwardContext context;
    context.results = &results;
    model->forward(tokens, context);
    const at::Tensor loss = model->aux_losses(results).balance;
    if (gradient != nullptr) {
      loss.backward();
      for (const ParameterPtr& parameter : model->parameters()) {
        if (parameter->name == name) {
          *gradient = parameter->gradient().clone();
        }
      }
    }
    return loss.item<double>();
  };
  at::Tensor gradient;
  balance(0, &gradient);
  const double slope = (gradient[1] * at::linspace(-1, 1, 32)).sum().item<double>();
  constexpr double h = 1e-4;  // small enough that no token changes its experts
  CHECK((balance(h, nullptr) - balance(-h, nullptr)) / (2 * h) == Approx(slope).epsilon(0.05).margin(1e-5));
}

TEST_CASE("moe: selection biases move once an update, by the load of all its micro-batches", "[moe]") {
  config::Config config = with_router(GENERATE("sigmoid_topk", "sigmoid"));
  config.model.moe_bias_rule = config.model.moe_router == "sigmoid" ? "sign" : "auto";
  CAPTURE(config.model.moe_router);
  const Update whole = update(config, 1), parts = update(config, 4);
  REQUIRE(!whole.buffers.empty());
  for (const auto& [name, value] : whole.buffers) {
    CAPTURE(name);
    CHECK(parts.buffers.at(name).equal(value));
    CHECK((name.ends_with("ema") || value.abs().max().item<double>() > 0));
    CHECK(value.abs().max().item<double>() < 0.3);
  }
}

TEST_CASE("moe: selection biases have no gradient and no place in the optimizer, but in checkpoints", "[moe]") {
  Bench bench(with_router("sigmoid_topk"));
  FixedLoader data(random_tokens(4, 32, 3), random_tokens(4, 32, 4), 2);
  bench.step(data, 0, 1e-2, [&](const StepResult&) {
    for (const ParameterPtr& parameter : bench.model->parameters()) {
      CHECK((!parameter->buffer || !parameter->gradient().defined()));
    }
  });
  for (const auto& [name, tensor] : bench.optimizer->state().tensors) {
    CHECK(name.find("expert_bias") == std::string::npos);
    CHECK(name.find("expert_ema") == std::string::npos);
  }
  std::int64_t stored = 0;
  for (const auto& [name, tensor] : weights_of(*bench.model)) {
    stored += name.ends_with("router.expert_bias") || name.ends_with("router.expert_ema") ? 1 : 0;
  }
  CHECK(stored == 4);
}

TEST_CASE("moe: evaluation, recomputation and skipped steps leave selection biases alone", "[moe]") {
  Bench bench(with_router("sigmoid_topk"));
  const auto before = buffers_of(*bench.model);
  const auto unmoved = [&] {
    for (const auto& [name, value] : buffers_of(*bench.model)) {
      CHECK(value.equal(before.at(name)));
    }
  };
  FixedLoader data(random_tokens(4, 32, 3), random_tokens(4, 32, 4), 2);
  evaluate(*bench.model, *bench.optimizer, data, {}, 0);
  unmoved();

  const ParameterPtr head = bench.model->parameters().back();
  const at::Tensor kept = head->master.detach().clone();
  head->master.detach().fill_(std::numeric_limits<float>::quiet_NaN());
  CHECK(!bench.step(data, 0, 1e-2).skipped.empty());
  unmoved();
  head->master.detach().copy_(kept);

  // What a forward leaves joins the step only where somebody hands it over.
  const auto counted = [&](int forwards) {
    Bench again(with_router("sigmoid_topk"));
    ForwardResults results;
    for (int i = 0; i < forwards; ++i) {
      results = {};
      ForwardContext context;
      context.results = &results;
      again.model->forward(random_tokens(2, 32, 3), context);
    }
    again.model->end_micro(results);
    again.model->end_step(true, 0);
    return buffers_of(*again.model);
  };
  const auto once = counted(1), twice = counted(2);
  for (const auto& [name, value] : once) {
    CHECK(value.equal(twice.at(name)));
  }
}

TEST_CASE("moe: an expert that nobody visits has a zero gradient", "[moe]") {
  config::Config config = with_router("sigmoid");
  config.model.moe_bias_rule = "sign";
  config.model.moe_gradient_scale = true;
  Bench bench(config);
  for (const ParameterPtr& parameter : bench.model->parameters()) {
    if (parameter->name.ends_with("expert_bias")) {
      parameter->master.select(0, 2).fill_(-100);
    }
  }
  FixedLoader data(random_tokens(4, 32, 3), random_tokens(4, 32, 4), 2);
  const StepResult result = bench.step(data, 0, 1e-2, [&](const StepResult&) {
    for (const ParameterPtr& parameter : bench.model->parameters()) {
      if (parameter->stack) {
        const at::Tensor gradient = parameter->gradient();
        CHECK(gradient[2].eq(0).all().item<bool>());
        CHECK(gradient[1].ne(0).any().item<bool>());
      }
    }
  });
  CHECK(result.skipped.empty());
  for (const auto& [name, value] : bench.model->metrics()) {
    if (name == "moe/expert_balance") {
      CHECK(value == 0);
    }
  }
}

TEST_CASE("moe: metrics say how even the load is", "[moe]") {
  config::Config config = moe_config();
  config.model.moe_capacity_factor = 0.5;
  const auto metrics = update(config, 2).metrics;
  CHECK(metrics.at("moe/aux_loss") >= 1.9);  // two layers, at least about 1 each
  CHECK(metrics.at("moe/expert_balance") > 0);
  CHECK(metrics.at("moe/expert_balance") <= 1);
  CHECK(metrics.at("moe/max_load") >= 1);
  CHECK(metrics.at("moe/load_entropy") > 0.5);
  CHECK(metrics.at("moe/load_entropy") <= 1.0 + 1e-9);
  CHECK(metrics.at("moe/dropped") >= 0.5);  // half the places
  CHECK(update(tiny_config(), 1).metrics.empty());
}
