// moe: routers, experts, auxiliary losses, counts, gradients and selection biases; routers alone over several steps; a short training.

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/GradMode.h>

#include <algorithm>

#include "builtins/builtins.h"
#include "core/text.h"
#include "model/layer/place.h"
#include "model/moe/moe.h"
#include "model/moe/topk_router.h"
#include "optim/clip.h"
#include "parity/areas.h"
#include "parity/job.h"
#include "parity/weights.h"
#include "train/step/loss.h"

namespace kf::parity {
namespace {

constexpr Bound kLoss{1e-5, 0};         // cases: losses
constexpr Bound kGradient{1e-5, 2e-3};  // cases: gradients
constexpr Bound kNorm{0, 1e-5};         // README: grad_norm
constexpr Bound kZ{1e-5, 1e-6};         // README: z and z_sum
constexpr Bound kRoute{1e-5, 0};        // README: route weights
constexpr Bound kAfter{1e-7, 0};        // README: after.*
constexpr Bound kBalance{1e-6, 0};      // README: expert_balance
constexpr Bound kRouterAlone{1e-6, 0};  // cases: routers
constexpr Bound kTrainLosses{0, 1e-4};  // case: losses of the short training
constexpr Bound kTrainBias{1e-5, 0};    // case: bias of it

config::Config config_of(const Case& test, const Registries& registries) {
  Table sections;
  put(sections, "model", table(test.at("config"), "config"));
  put(sections, "train", "batch_size", Node(std::int64_t{2}));
  put(sections, "train", "seq_len", Node(std::int64_t{16}));
  put(sections, "train", "mixed_precision", Node(std::string("fp32")));
  if (const Node* optimizer = test.get("optimizer")) {
    put(sections, "optimizer", table(*optimizer, "optimizer"));
  }
  return job_of(sections, registries);
}

at::Tensor forward(Model& model, const at::Tensor& tokens, ForwardResults* results = nullptr) {
  ForwardContext context;
  context.results = results;
  return model.forward(tokens.to(at::kLong), context);
}

at::Tensor cross_entropy(const config::Config& config, const Registries& registries, const at::Tensor& logits, const at::Tensor& labels) {
  const at::Tensor flat = labels.to(at::kLong).flatten();
  const at::Tensor sum = make_loss(config, registries, "cross_entropy")->sum(logits.flatten(0, -2), flat);
  return sum / flat.ne(-100).sum();
}

void compare_number(const Case& test, const std::string& key, double actual, const Bound& bound, Comparison& out) {
  if (const Node* expected = test.expected(key)) {
    out.number(key, actual, number(*expected, key), Tolerance{{bound}});
  }
}

/// What every layer recorded in a training forward.
void compare_routing(const Case& test, const ForwardResults& results, Comparison& out) {
  double aux_sum = 0, z_sum = 0;
  at::Tensor all_counts;
  const auto per_layer = [&](const std::string& key, std::int64_t layer, double actual, const Bound& bound) {
    if (const Node* expected = test.expected(key)) {
      const std::string index = std::to_string(layer);
      out.number(key + "." + index, actual, number(parity::at(table(*expected, key), index), key), Tolerance{{bound}});
    }
  };
  for (const ExpertsRecord& last : results.experts) {
    const std::int64_t index = last.layer->options().layer;
    const std::string route = "route." + std::to_string(index);
    const std::string counts = "counts." + std::to_string(index);
    out.tensor(route + ".indices", last.experts, test.tensor(route + ".indices"), Tolerance{{{}}});
    out.tensor(route + ".weights", last.weights, test.tensor(route + ".weights"), Tolerance{{kRoute}});
    if (test.has_tensor(route + ".capacity_weights")) {
      out.tensor(route + ".capacity_weights", last.kept, test.tensor(route + ".capacity_weights"), Tolerance{{kRoute}});
    }
    out.tensor(counts, last.counts, test.tensor(counts), Tolerance{{{}}});
    all_counts = all_counts.defined() ? at::cat({all_counts, last.counts}) : last.counts;
    const double aux = last.balance.defined() ? last.balance.item<double>() : 0;
    const double z = last.z.item<double>();
    per_layer("aux_per_layer", index, aux, kLoss);
    per_layer("z_per_layer", index, z, kZ);
    aux_sum += aux;
    z_sum += z;
  }
  compare_number(test, "aux_sum", aux_sum, kLoss, out);
  compare_number(test, "router_z_sum", z_sum, kZ, out);
  compare_number(test, "expert_balance", all_counts.min().item<double>() / all_counts.max().item<double>(), kBalance, out);
}

/// `prefix`name of every tensor of the state dict, as `value_of` gives it for the whole parameter.
template <class ValueOf>
void compare_stored(const Case& test, Model& model, const std::string& prefix, const Tolerance& tolerance, Comparison& out,
                    const ValueOf& value_of) {
  const at::NoGradGuard no_grad;
  std::int64_t found = 0;
  for (const ParameterPtr& parameter : model.parameters()) {
    for (const StoredView& view : parameter->stored()) {
      for (const std::string& name : names_in(test, model, prefix, view.name)) {
        out.tensor(name, view.of(value_of(*parameter)), test.tensor(name), tolerance);
        ++found;
      }
    }
  }
  // Where the reference builds other experts than it should, its own names stand beside the right ones.
  const std::vector<std::string> names = test.tensors(prefix);
  const auto is_right = [&](const std::string& name) { return test.has_right(prefix + name); };
  const auto right = std::count_if(names.begin(), names.end(), is_right);
  out.integer(prefix + "*", found, right > 0 ? right : static_cast<std::int64_t>(names.size()));
}

at::Tensor master_of(const Parameter& parameter) { return parameter.master; }

/// The weight of the balancing loss: the case's, which `right` corrects.
void compare_aux_weight(const Case& test, const ForwardResults& results, Comparison& out) {
  const Node* right = test.expected("aux_weight");
  const double weight = number(right ? *right : test.at("aux_weight"), "aux_weight");
  for (const ExpertsRecord& record : results.experts) {
    if (record.balance.defined()) {
      out.number("aux_weight", record.layer->router().balance_weight(), weight, Tolerance{{{}}});
    }
  }
}

void run_model_case(const Case& test, Comparison& out) {
  const Registries registries = native_registries();
  const config::Config config = config_of(test, registries);
  const auto model = model_of(test, config, registries, at::kFloat, out);
  const at::Tensor tokens = test.tensor("input_ids");
  const Tolerance logits_tolerance = test.tolerance("fp32: logits");
  {
    const at::NoGradGuard no_grad;
    model->train(false);
    out.tensor("logits_eval", forward(*model, tokens), test.tensor("logits_eval"), logits_tolerance);
    model->train();
  }
  ForwardResults results;
  const at::Tensor logits = forward(*model, tokens, &results);
  out.tensor("logits", logits, test.tensor("logits"), logits_tolerance);
  compare_routing(test, results, out);
  compare_aux_weight(test, results, out);

  const at::Tensor ce = cross_entropy(config, registries, logits, test.tensor("labels"));
  const AuxLosses aux = model->aux_losses(results);
  at::Tensor total = ce;
  for (const at::Tensor& term : {aux.balance, aux.router_z}) {
    total = term.defined() ? total + term : total;
  }
  compare_number(test, "loss_ce", ce.item<double>(), kLoss, out);
  compare_number(test, "loss_total", total.item<double>(), kLoss, out);
  total.backward();
  compare_stored(test, *model, "grads.", Tolerance{{kGradient}}, out, gradient_of);
  compare_number(test, "grad_norm", gradient_norm(model->parameters()).item<double>(), kNorm, out);

  const Node* const step = test.get("moe_step");
  const std::vector<double> progress = step != nullptr ? numbers(*step, "moe_step") : std::vector<double>{0, 1};
  model->end_micro(results);
  model->end_step(true, progress[0] / progress[1]);
  compare_stored(test, *model, "after.", Tolerance{{kAfter}}, out, master_of);
}

/// The settings that a lone router reads. No job is made of them: what the rest of a model wants of its width does not matter here.
config::Config router_config(const Table& c) {
  config::Config config;
  config::ModelConfig& m = config.model;
  m.dim = integer(parity::at(c, "dim"), "dim");
  m.num_experts = integer(parity::at(c, "num_experts"), "num_experts");
  m.moe_top_k = integer(parity::at(c, "top_k"), "top_k");
  m.moe_router = text(parity::at(c, "router"), "router");
  if (const Node* schedule = parity::get(c, "bias_schedule"); schedule != nullptr && !schedule->is_null()) {
    m.moe_bias_schedule = text(*schedule, "bias_schedule");
  }
  if (const Node* weight = parity::get(c, "sequence_aux_loss_weight"); weight != nullptr && !weight->is_null()) {
    m.moe_sequence_aux_loss_weight = number(*weight, "sequence_aux_loss_weight");
  }
  return config;
}

/// Gives a router without a model its storage.
void fill(Router& router, const Case& test) {
  for (const ParameterPtr& parameter : router.parameters()) {
    parameter->master = test.has_tensor(parameter->name) ? test.tensor(parameter->name).clone()
                                                         : at::full(parameter->shape, parameter->init.std, at::kFloat);
    parameter->value = parameter->master;
  }
}

void run_router_case(const Case& test, Comparison& out) {
  const Registries registries = native_registries();
  const Table& c = table(test.at("config"), "config");
  const config::Config config = router_config(c);
  const std::string name = text(parity::at(c, "router"), "router");
  const Place place{0, config.model.dim, 0, nullptr};
  const std::shared_ptr<Router> router = make_part(registries.router, name, config, registries, place);
  fill(*router, test);
  const auto buffer = [&](const std::string& which) {
    for (const ParameterPtr& parameter : router->parameters()) {
      if (parameter->name == which) {
        return parameter->master;
      }
    }
    return at::Tensor();
  };
  const double max_steps = number(parity::at(c, "max_steps"), "max_steps");
  const std::vector<double> aux = numbers(*test.expected("aux"), "aux"), z = numbers(*test.expected("z"), "z"),
                            rates = numbers(*test.expected("bias_rate"), "bias_rate");
  const Tolerance near{{kRouterAlone}};
  const at::Tensor x = test.tensor("x");
  for (std::int64_t s = 0; s < x.size(0); ++s) {
    const auto at_step = static_cast<std::size_t>(s);
    const std::string where = format("[{}]", s);
    const Routing routing = router->route(x[s]);
    const at::Tensor counts = count_assignments(routing.experts, config.model.num_experts);
    out.tensor("indices" + where, routing.experts, test.tensor("indices")[s], Tolerance{{{}}});
    out.tensor("weights" + where, routing.weights, test.tensor("weights")[s], near);
    out.tensor("counts" + where, counts, test.tensor("counts")[s], Tolerance{{{}}});
    out.number("aux" + where, routing.balance.defined() ? routing.balance.item<double>() : 0, aux[at_step], near);
    out.number("z" + where, routing.z.item<double>(), z[at_step], Tolerance{{kZ}});
    const double progress = static_cast<double>(s) / max_steps;
    router->rebalance(counts, progress);
    if (test.has_tensor("bias_after")) {
      const SelectionBias rule(*topk_router_options({config, {}, registries, registries.kernels_of(config)}, place).bias);
      out.number("bias_rate" + where, rule.rate(progress), rates[at_step], Tolerance{{{1e-12, 0}}});
      out.tensor("bias_after" + where, buffer("expert_bias"), test.tensor("bias_after")[s], Tolerance{{kAfter}});
      out.tensor("ema_after" + where, buffer("expert_ema"), test.tensor("ema_after")[s], Tolerance{{kAfter}});
    }
  }
}

void run_router_training(const Case& test, Comparison& out) {
  const Registries registries = native_registries();
  const config::Config config = config_of(test, registries);
  const auto model = model_of(test, config, registries, at::kFloat, out);
  const ParameterList parameters = model->parameters();
  const auto optimizer = make_optimizer(config, registries, parameters);
  const std::vector<double> losses = numbers(*test.expected("losses"), "losses");
  const at::Tensor tokens = test.tensor("input_ids"), bias_after = test.tensor("bias_after");
  for (std::int64_t s = 0; s < tokens.size(0); ++s) {
    ForwardResults results;
    const at::Tensor loss = cross_entropy(config, registries, forward(*model, tokens[s], &results), test.tensor("labels")[s]);
    loss.backward();
    model->end_micro(results);
    optimizer->step(config.optimizer.lr);
    model->end_step(true, static_cast<double>(s) / static_cast<double>(tokens.size(0)));
    for (const ParameterPtr& parameter : parameters) {
      parameter->clear_gradient();
    }
    out.number(format("losses[{}]", s), loss.item<double>(), losses[static_cast<std::size_t>(s)], Tolerance{{kTrainLosses}});
    std::int64_t layer = 0;
    for (const ParameterPtr& parameter : parameters) {
      if (parameter->name.ends_with("expert_bias")) {
        out.tensor(format("bias_after[{}][{}]", s, layer), parameter->master, bias_after[s][layer], Tolerance{{kTrainBias}});
        ++layer;
      }
    }
  }
  compare_stored(test, *model, "final.", Tolerance{{{1e-5, 1e-4}}}, out, master_of);
}

}  // namespace

void run_moe(const Case& test, Comparison& out) {
  if (test.kind == "model") {
    run_model_case(test, out);
  } else if (test.kind == "router") {
    run_router_case(test, out);
  } else {
    KF_CHECK(test.kind == "router_train", Code::other, "the runner knows no kind '{}' of moe cases", test.kind);
    run_router_training(test, out);
  }
}

}  // namespace kf::parity
