// init: rule and measured statistics of every weight.

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <map>

#include "builtins/builtins.h"
#include "config/plan/derived.h"
#include "model/transformer/build.h"
#include "parity/areas.h"
#include "parity/job.h"

namespace kf::parity {
namespace {

/// format.check: five standard errors of the mean, the standard deviation and the excess kurtosis of n normal draws.
void check_normal(const std::string& name, const at::Tensor& value, double std, Comparison& out) {
  const double n = static_cast<double>(value.numel());
  const at::Tensor x = value.to(at::kDouble);
  const double mean = x.mean().item<double>();
  const at::Tensor centred = x - mean;
  const double variance = centred.square().mean().item<double>();
  const double kurtosis = centred.pow(4).mean().item<double>() / (variance * variance) - 3;
  out.number(name + " mean", mean, 0, Tolerance{{{5 * std / std::sqrt(n), 0}}});
  out.number(name + " std/rule", std::sqrt(variance) / std, 1, Tolerance{{{5 / std::sqrt(2 * n), 0}}});
  out.number(name + " excess kurtosis", kurtosis, 0, Tolerance{{{5 * std::sqrt(24 / n), 0}}});
}

void check_constant(const std::string& name, const at::Tensor& value, double rule, Comparison& out) {
  out.tensor(name, value, at::full_like(value, rule), Tolerance{{{}}});
}

/// A tensor of the state dict and the parameter that it shows.
struct Stored {
  ParameterPtr parameter;
  at::Tensor value;
};

void check_parameter(const std::string& name, const Stored& stored, const Table& entry, Comparison& out) {
  const Parameter& parameter = *stored.parameter;
  out.integers(name + " shape", stored.value.sizes().vec(), integers(at(entry, "shape"), "shape"));
  out.integer(name + " n", stored.value.numel(), integer(at(entry, "n"), "n"));
  const std::string rule = text(at(entry, "rule"), "rule");
  if (rule == "normal") {
    const double std = number(at(entry, get(entry, "right_std") ? "right_std" : "rule_std"), "rule_std");
    out.require(name + " rule", parameter.init.kind == Init::Kind::normal, name + " is not drawn from a normal distribution");
    out.number(name + " rule_std", parameter.init.std, std, Tolerance{{{0, 1e-12}}});
    check_normal(name, stored.value, std, out);
  } else {
    out.require(name + " rule", rule == "constant", "the runner knows no rule '" + rule + "'");
    check_constant(name, stored.value, number(at(entry, "rule_value"), "rule_value"), out);
  }
}

}  // namespace

void run_init(const Case& test, Comparison& out) {
  const Registries registries = native_registries();
  Table sections;
  put(sections, "model", table(test.at("config"), "config"));
  put(sections, "train", "seq_len", Node(std::int64_t{16}));  // not part of the case; below any max_seq_len
  put(sections, "train", "seed", test.at("seed"));
  const config::Config config = job_of(sections, registries);
  const auto model = build_model(config, registries);
  materialize(*model, at::kCPU, at::kFloat, static_cast<std::uint64_t>(config.train.seed));

  const at::NoGradGuard no_grad;
  std::map<std::string, Stored> ours;
  for (const ParameterPtr& parameter : model->parameters()) {
    for (const StoredView& view : parameter->stored()) {
      ours[view.name] = {parameter, view.of(parameter->master)};
    }
  }
  const Table& expected = table(test.at("parameters"), "parameters");
  for (const auto& [name, entry] : expected) {
    out.require(name, ours.count(name) > 0, "the model has no " + name);
    if (ours.count(name)) {
      check_parameter(name, ours[name], table(entry, name), out);
    }
  }
  for (const auto& [name, stored] : ours) {
    out.require(name, expected.find(name) != nullptr, "the reference has no " + name);
  }
  const std::int64_t total = integer(test.at("total_parameters"), "total_parameters");
  out.integer("total_parameters", count_parameters(model->parameters()), total);
  out.integer("parameter_count of the settings", config::parameter_count(config.model), total);
}

}  // namespace kf::parity
