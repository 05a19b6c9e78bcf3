// Multi-token prediction: which labels, what it adds to the loss, what it leaves alone.

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "config/plan/derived.h"
#include "model/transformer/mtp.h"
#include "moe_model.h"
#include "train/step/look_ahead.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

using namespace kf;
using namespace kf::test;

namespace {

config::Config ahead_config(std::int64_t depths) {
  config::Config config = moe_config();
  config.model.mtp_layers = depths;
  config.train.mtp_loss_weight = 0.5;
  config.train.grad_clip_norm = 1e9;
  return config;
}

struct Update {
  StepResult result;
  std::vector<at::Tensor> gradients;
};

Update update(Bench& bench, const at::Tensor& tokens, const at::Tensor& labels, std::int64_t micros) {
  FixedLoader data(tokens, labels, tokens.size(0) / micros);
  StepperOptions options;
  options.batches = micros;
  options.grad_clip_norm = 1e9;
  Update out;
  out.result = Stepper(*bench.model, *bench.optimizer, *bench.objective, options)
                   .run(data, 0, 0.0, {{}, [&](const StepResult&) {
                                         for (const ParameterPtr& parameter : bench.model->parameters()) {
                                           out.gradients.push_back(parameter->gradient().defined() ? parameter->gradient().clone()
                                                                                                   : at::zeros(parameter->shape));
                                         }
                                         return false;
                                       }});
  return out;
}

}  // namespace

TEST_CASE("look ahead: labels move to the left, and stop at the ends of rows and documents", "[mtp]") {
  Batch batch = make_batch(at::tensor({5, 6, 7, 8, 9}, at::kLong).unsqueeze(0), at::tensor({6, 7, 8, 9, 10}, at::kLong).unsqueeze(0));
  CHECK(labels_ahead(batch, 1).equal(at::tensor({7, 8, 9, 10, -100}, at::kLong).unsqueeze(0)));
  CHECK(labels_ahead(batch, 2).equal(at::tensor({8, 9, 10, -100, -100}, at::kLong).unsqueeze(0)));
  CHECK(labels_ahead(batch, 9).eq(kIgnore).all().item<bool>());
  CHECK(count_ahead({batch, batch}, 2) == 2 * (4 + 3));
  batch.doc_ids = at::tensor({0, 0, 1, 1, 1}, at::kLong).unsqueeze(0);
  CHECK(labels_ahead(batch, 1).equal(at::tensor({7, -100, 9, 10, -100}, at::kLong).unsqueeze(0)));
}

TEST_CASE("look ahead: tokens move with them", "[mtp]") {
  const at::Tensor tokens = at::tensor({5, 6, 7}, at::kLong).unsqueeze(0);
  CHECK(tokens_ahead(tokens, 1).equal(at::tensor({6, 7, 0}, at::kLong).unsqueeze(0)));
  CHECK(tokens_ahead(tokens, 5).eq(0).all().item<bool>());
}

TEST_CASE("look ahead: the logits of the next token stay what they are", "[mtp]") {
  const at::Tensor tokens = random_tokens(2, 16, 5);
  const auto with = tiny_model(ahead_config(2)), without = tiny_model(moe_config());
  CHECK(logits_of(*with, tokens).equal(logits_of(*without, tokens)));
}

TEST_CASE("look ahead: a token further on changes what is predicted two ahead, and nothing before it", "[mtp]") {
  const auto model = tiny_model(ahead_config(1));
  const at::NoGradGuard no_grad;
  const auto ahead = [&](const at::Tensor& tokens) {
    ForwardResults results;
    ForwardContext context;
    context.results = &results;
    context.looks_ahead = true;
    model->forward(tokens, context);
    REQUIRE(results.ahead.size() == 1);
    return model->project(results.ahead[0]);
  };
  const at::Tensor tokens = random_tokens(1, 12, 5);
  at::Tensor other = tokens.clone();
  other[0][7] = (tokens[0][7] + 1).remainder(kTinyVocab);
  const at::Tensor difference = (ahead(tokens) - ahead(other)).abs().amax(-1)[0];  // (T)
  CHECK(difference.narrow(0, 0, 6).max().item<double>() < 1e-6);                   // position 5 knows token 6
  CHECK(difference[6].item<double>() > 1e-5);
}

TEST_CASE("look ahead: its loss is the weighted mean over all depths and micro-batches", "[mtp]") {
  const at::Tensor tokens = random_tokens(8, 32, 3);
  at::Tensor labels = random_tokens(8, 32, 4);
  labels.narrow(0, 0, 3).narrow(1, 5, 20).fill_(kIgnore);
  config::Config config = ahead_config(2);
  config.model.moe_aux_loss_weight = 0;
  Bench bench(config);
  const Update whole = update(bench, tokens, labels, 1), parts = update(bench, tokens, labels, 4);
  const double* const ahead_loss = find_number(whole.result.extra, "mtp_loss");
  REQUIRE(ahead_loss != nullptr);
  CHECK(*find_number(parts.result.extra, "mtp_loss") == Approx(*ahead_loss).epsilon(1e-5));
  for (std::size_t i = 0; i < whole.gradients.size(); ++i) {
    CAPTURE(bench.model->parameters()[i]->name);
    CHECK((parts.gradients[i] - whole.gradients[i]).norm().item<double>() <= 1e-4 * whole.gradients[i].norm().item<double>() + 1e-9);
  }

  ForwardResults results;
  ForwardContext context;
  context.results = &results;
  context.looks_ahead = true;
  bench.model->forward(tokens, context);
  const Batch batch = make_batch(tokens, labels);
  double sum = 0;
  for (std::int64_t k = 1; k <= 2; ++k) {
    sum += bench.loss
               ->sum(bench.model->project(results.ahead[static_cast<std::size_t>(k - 1)]).flatten(0, 1), labels_ahead(batch, k).flatten())
               .item<double>();
  }
  CHECK(*ahead_loss == Approx(0.5 * sum / static_cast<double>(count_ahead({batch}, 2))).epsilon(1e-5));
  CHECK(whole.result.loss == Approx(whole.result.ce + *ahead_loss));
}

TEST_CASE("look ahead: every layer of it is trained, and counted", "[mtp]") {
  Bench bench(ahead_config(2));
  const Update done = update(bench, random_tokens(4, 32, 3), random_tokens(4, 32, 4), 1);
  std::int64_t own = 0;
  const ParameterList parameters = bench.model->parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i]->name.starts_with("mtp.")) {
      CAPTURE(parameters[i]->name);
      CHECK(done.gradients[i].ne(0).any().item<bool>());
      ++own;
    }
  }
  CHECK(own > 10);
  CHECK(config::parameter_count(bench.config.model) == count_parameters(parameters));
}
