// optimizers: trajectories under given gradients, Newton-Schulz alone, and what once failed.

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "builtins/builtins.h"
#include "optim/muon.h"
#include "parity/areas.h"
#include "parity/job.h"

namespace kf::parity {
namespace {

/// A free-standing fp32 weight.
ParameterPtr parameter_of(const std::string& name, const at::Tensor& start) {
  auto parameter = std::make_shared<Parameter>();
  parameter->name = name;
  parameter->shape = start.sizes().vec();
  parameter->role = start.dim() < 2 ? Role::vector : Role::hidden;
  parameter->value = start.clone().set_requires_grad(true);
  parameter->master = parameter->value;
  return parameter;
}

/// The optimizer's settings. What only describes the case ("nesterov") is dropped; Muon's cases choose by shape (README, 1).
config::Config settings_of(const Table& optimizer, const Registries& registries) {
  Table section = optimizer;
  section.erase("nesterov");
  if (text(at(section, "name"), "name") == "muon" && !section.find("muon_params")) {
    section["muon_params"] = Node(std::string("shape"));
  }
  Table sections;
  put(sections, "optimizer", section);
  return job_of(sections, registries);
}

Tolerance tolerance_of(const Case& test, const std::string& optimizer) {
  if (test.kind == "external") {
    return test.tolerance(optimizer, {{5e-3, 0}});  // README: comparison with torch.optim.Muon
  }
  return test.tolerance(optimizer.starts_with("schedule_free") ? "schedule_free" : optimizer);
}

void check_groups(const Case& test, const ParameterList& parameters, Comparison& out) {
  if (const Node* groups = test.get("groups")) {
    const std::vector<ParamGroup> ours = decay_groups(parameters, 1);
    for (const ParamGroup& group : ours) {
      const char* key = group.weight_decay != 0 ? "decay" : "no_decay";
      for (const ParameterPtr& parameter : group.parameters) {
        const Array& theirs = list(at(table(*groups, "groups"), key), key);
        const bool listed = std::any_of(theirs.begin(), theirs.end(), [&](const Node& node) { return same(node, Node(parameter->name)); });
        out.require("groups", listed, parameter->name + " is not in the group " + key);
      }
    }
  }
}

/// Sum and norm of a weight after the last step, within what the tolerance of single values allows them.
void check_expected(const Case& test, const Parameter& parameter, const Tolerance& tolerance, Comparison& out) {
  const Node* entry = test.expected(parameter.name);
  if (!entry) {
    return;
  }
  const at::Tensor value = parameter.master.detach().to(at::kDouble);
  const double n = static_cast<double>(value.numel()), norm = value.norm().item<double>();
  const Bound& bound = tolerance.bounds.back();
  const double sum = bound.abs * n + bound.rel * value.abs().sum().item<double>();
  const double l2 = bound.abs * std::sqrt(n) + bound.rel * norm;
  const Table& row = table(*entry, parameter.name);
  out.number(parameter.name + " sum", value.sum().item<double>(), number(at(row, "sum"), "sum"), Tolerance{{{sum, 0}}});
  out.number(parameter.name + " l2", norm, number(at(row, "l2"), "l2"), Tolerance{{{l2, 0}}});
}

/// The case whose trajectory is the right one, where `right_notes` names it ("trajectory of case muon"): it then stands in for the weights
/// that have no right trajectory of their own.
std::optional<Case> right_elsewhere(const Case& test) {
  constexpr std::string_view words = "trajectory of case ";
  const std::string notes = test.use_right && test.get("right_notes") ? text(test.at("right_notes"), "right_notes") : "";
  if (notes.starts_with(words)) {
    const std::string name = notes.substr(words.size(), notes.find_first_of(" ,;(", words.size()) - words.size());
    for (Case& other : load_cases(test.folder)) {
      if (other.name == name) {
        return std::move(other);
      }
    }
  }
  return std::nullopt;
}

void run_trajectory(const Case& test, Comparison& out) {
  const std::optional<Case> elsewhere = right_elsewhere(test);
  const auto source = [&](const std::string& weight) -> const Case& {
    return elsewhere && !test.has_right("params." + weight) ? *elsewhere : test;
  };
  const Registries registries = native_registries();
  const config::Config config = settings_of(table(test.at("config"), "config"), registries);
  if (const Node* mode = test.get("grad_mode")) {
    const std::string words = test.expected("grad_mode") ? text(*test.expected("grad_mode"), "grad_mode") : text(*mode, "grad_mode");
    KF_CHECK(words.starts_with("replaced"), Code::other, "the runner knows no grad_mode '{}'", words);
  }
  const SafetensorsFile given = test.open("given.safetensors");
  ParameterList parameters;
  for (const std::string& name : given.names()) {
    const std::string bare = name.starts_with("init.") ? name.substr(5) : "";
    if (!bare.empty() && (test.kind != "external" || test.has_tensor("params." + bare))) {
      parameters.push_back(parameter_of(bare, given.tensor(name)));
    }
  }
  check_groups(test, parameters, out);
  const auto optimizer = make_optimizer(config, registries, parameters);
  const Tolerance tolerance = tolerance_of(test, config.optimizer.name);
  const std::vector<double> factors = test.get("lr_factors") ? numbers(test.at("lr_factors"), "lr_factors") : std::vector<double>{};
  const std::int64_t steps = integer(test.at("steps"), "steps");
  for (std::int64_t s = 0; s < steps; ++s) {
    for (const ParameterPtr& parameter : parameters) {
      parameter->set_gradient(given.tensor("grads." + parameter->name)[s].clone());
    }
    optimizer->step(config.optimizer.lr * (factors.empty() ? 1 : factors.at(static_cast<std::size_t>(s))));
    for (const ParameterPtr& parameter : parameters) {
      const std::string name = "params." + parameter->name;
      out.tensor(name + " step " + std::to_string(s), parameter->master, source(parameter->name).tensor(name)[s], tolerance);
    }
    if (!test.tensors("eval.").empty()) {
      optimizer->use_averages(true);
      for (const ParameterPtr& parameter : parameters) {
        const std::string name = "eval." + parameter->name;
        out.tensor(name + " step " + std::to_string(s), parameter->master, test.tensor(name)[s], tolerance);
      }
      optimizer->use_averages(false);
    }
  }
  for (const ParameterPtr& parameter : parameters) {
    check_expected(source(parameter->name), *parameter, tolerance, out);
  }
}

void run_newton_schulz(const Case& test, Comparison& out) {
  const Tolerance tolerance = test.tolerance("Newton-Schulz", {{2e-6, 1e-5}});
  for (const std::string& name : test.tensors("in.")) {
    const at::Tensor x = test.tensor("in." + name);
    for (const std::int64_t steps : {1, 2, 3, 4, 5, 6, 7, 8, 10}) {
      const std::string key = "out" + std::to_string(steps) + "." + name;
      if (test.has_tensor(key)) {
        out.tensor(key, newton_schulz(x, steps), test.tensor(key), tolerance);
      }
    }
    if (const Node* entry = test.expected(name)) {
      for (const auto& [key, values] : table(*entry, name)) {
        if (key.starts_with("singular_values_after_")) {
          const at::Tensor result = newton_schulz(x, std::stoll(key.substr(22))).to(at::kDouble);
          const at::Tensor found = std::get<1>(at::linalg_svd(result, false));
          out.tensor(name + " " + key, found, at::tensor(numbers(values, key), at::kDouble), Tolerance{{{1e-5, 1e-5}}});
        }
      }
    }
  }
}

/// "" when `step` ran and left everything at one, else what went wrong.
std::string step_from_ones(const Registries& registries, const Table& optimizer, const std::vector<std::int64_t>& shape, double lr,
                           bool must_stay) {
  const config::Config config = settings_of(optimizer, registries);
  const ParameterPtr parameter = parameter_of("layer.weight", at::ones(shape));
  const auto made = make_optimizer(config, registries, {parameter});
  parameter->set_gradient(at::ones(shape));
  made->step(lr);
  const auto all_one = [&] { return at::equal(parameter->master.detach(), at::ones(shape)); };
  bool stayed = all_one();
  made->use_averages(true);
  stayed = stayed && all_one();
  made->use_averages(false);
  if (!at::isfinite(parameter->master).all().item<bool>()) {
    return "the step left NaN behind";
  }
  return must_stay == stayed ? "" : must_stay ? "the parameters moved" : "the parameters did not move";
}

Table named(const std::string& name) {
  Table out;
  out["name"] = Node(name);
  out["lr"] = Node(0.01);
  out["weight_decay"] = Node(0.0);
  return out;
}

void run_errors(const Case& test, Comparison& out) {
  const Registries registries = native_registries();
  for (const auto& [what, expected] : test.expected()) {
    std::string problem;
    std::string refused;
    try {
      if (what.starts_with("schedule_free_adamw step with lr 0")) {
        problem = step_from_ones(registries, named("schedule_free_adamw"), {3, 3}, 0, true);
      } else if (what.starts_with("muon with no eligible")) {
        problem = step_from_ones(registries, named("muon"), {4}, 0.01, false);
      } else if (what.starts_with("unknown optimizer")) {
        settings_of(named("sgd"), registries);
      } else {
        problem = "the runner does not know how to do this";
      }
    } catch (const std::exception& e) {
      refused = e.what();
    }
    if (expected.is_null()) {
      out.require(what, problem.empty() && refused.empty(), what + ": " + problem + refused);
    } else {
      out.require(what, problem.empty() && !refused.empty(), what + ": " + (problem.empty() ? "was not refused" : problem));
      if (what.starts_with("unknown optimizer")) {
        out.require(what, refused.find("sgd") != std::string::npos, "the message does not name sgd: " + refused);
      }
    }
  }
}

}  // namespace

void run_optimizers(const Case& test, Comparison& out) {
  if (test.kind == "errors") {
    run_errors(test, out);
  } else if (test.kind == "function") {
    run_newton_schulz(test, out);
  } else {
    KF_CHECK(test.kind.empty() || test.kind == "external", Code::other, "the runner knows no kind '{}' of optimizers cases", test.kind);
    run_trajectory(test, out);
  }
}

}  // namespace kf::parity
