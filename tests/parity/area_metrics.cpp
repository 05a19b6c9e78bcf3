// metrics: clipping, parameter counts, FLOPs, MFU, tables.

#include <ATen/ATen.h>

#include <cmath>
#include <optional>

#include "builtins/builtins.h"
#include "config/load/load.h"
#include "config/plan/budget.h"
#include "config/plan/derived.h"
#include "core/error.h"
#include "core/text.h"
#include "metrics/numbers.h"
#include "metrics/peak.h"
#include "metrics/throughput.h"
#include "model/transformer/build.h"
#include "optim/clip.h"
#include "parity/areas.h"
#include "parity/job.h"
#include "train/step/language.h"
#include "train/step/stepper.h"

namespace kf::parity {
namespace {

const Tolerance kClip{{{0, 1e-6}}};
const Tolerance kMfu{{{0, 1e-12}}};
const Tolerance kExact{{{}}};

/// A weight that only carries a gradient.
ParameterPtr carrier(const std::string& name, const at::Tensor& gradient) {
  auto parameter = std::make_shared<Parameter>();
  parameter->name = name;
  parameter->shape = gradient.sizes().vec();
  parameter->value = at::zeros(gradient.sizes()).set_requires_grad(true);
  parameter->master = parameter->value;
  parameter->set_gradient(gradient.clone());
  return parameter;
}

/// A model of nothing but the case's weights, whose backward leaves the case's gradients: what an update of the training loop makes of
/// them.
class Given final : public Model {
 public:
  explicit Given(const ParameterList& carriers) : weights_(carriers) {
    for (const ParameterPtr& parameter : carriers) {
      share_parameter(parameter->name, parameter);
      parameter->value.register_hook([gradient = parameter->gradient().clone()](const at::Tensor&) { return gradient; });
    }
  }
  /// The logits are finite: it is the gradients that are spoilt.
  at::Tensor forward(const at::Tensor& tokens, ForwardContext& /*context*/) override {
    at::Tensor sum = at::zeros({});
    for (const ParameterPtr& parameter : weights_) {
      sum = sum + parameter->value.sum();
    }
    return sum.expand({tokens.size(0), tokens.size(1), 1});
  }
  KvCache make_cache(std::int64_t /*batch*/, std::int64_t /*capacity*/) override { return {}; }

 private:
  ParameterList weights_;
};

class FirstLogit final : public Loss {
 public:
  at::Tensor sum(const at::Tensor& logits, const at::Tensor& /*labels*/) const override { return logits.sum(); }
};

class OneToken final : public Loader {
 public:
  Batch batch(std::int64_t /*index*/) override {
    Batch out;
    out.tokens = at::zeros({1, 1}, at::kLong);
    out.labels = at::zeros({1, 1}, at::kLong);
    out.counted = 1;
    return out;
  }
  std::int64_t batches_per_epoch() const override { return 1; }
  std::string describe() const override { return "one token"; }
  std::string fingerprint() const override { return ""; }
};

/// Whether the update from these gradients changes no weight and no state.
bool update_skipped(const ParameterList& carriers, double max_norm) {
  const Registries registries = native_registries();
  const config::Config config = job_of({}, registries);
  for (const ParameterPtr& parameter : carriers) {
    parameter->master.data().fill_(1);
  }
  Given model(carriers);
  for (const ParameterPtr& parameter : carriers) {
    parameter->clear_gradient();
  }
  const auto optimizer = make_optimizer(config, registries, model.parameters());
  const FirstLogit loss;
  OneToken data;
  Language objective(loss);
  StepperOptions options;
  options.grad_clip_norm = max_norm;
  const StepResult result = Stepper(model, *optimizer, objective, options).run(data, 0, 0.1);
  bool same = !result.skipped.empty();
  for (const ParameterPtr& parameter : carriers) {
    same = same && at::equal(parameter->master.detach(), at::ones(parameter->shape));
  }
  for (const auto& [name, tensor] : optimizer->state().tensors) {
    same = same && tensor.to(at::kDouble).abs().max().item<double>() == 0;
  }
  return same;
}

void run_clip(const Case& test, Comparison& out) {
  ParameterList carriers;
  for (const std::string& name : test.tensors("grad.")) {
    carriers.push_back(carrier(name, test.tensor("grad." + name)));
  }
  const double max_norm = test.get("max_norm") ? number(test.at("max_norm"), "max_norm") : 1.0;
  const at::Tensor norm = gradient_norm(carriers);
  const double value = norm.item<double>();
  if (const Node* expected = test.expected("norm")) {
    out.number("norm", value, number(*expected, "norm"), kClip);
  }
  if (const Node* skipped = test.expected("update_skipped")) {
    out.require("update_skipped", update_skipped(carriers, max_norm) == boolean(*skipped, "update_skipped"),
                "the training loop made an update from gradients whose norm is not finite, or left one out");
    return;
  }
  clip_gradients(carriers, norm, max_norm);
  if (const Node* expected = test.expected("coef")) {
    out.number("coef", std::min(1.0, max_norm / (value + 1e-6)), number(*expected, "coef"), kClip);
  }
  for (auto& carrier : carriers) {
    const std::string name = "clipped." + carrier->name;
    if (test.has_tensor(name)) {
      out.tensor(name, carrier->gradient(), test.tensor(name), kClip);
    }
  }
}

/// What a weight is spent on, by its name; the words of config::parameter_parts.
std::string part_of(const Parameter& parameter) {
  const std::string name = parameter.stored().front().name;
  const auto holds = [&](std::string_view word) { return name.find(word) != std::string::npos; };
  return name.starts_with("token_embedding")     ? "embedding"
         : name.starts_with("output_head")       ? "head"
         : holds(".attention.")                  ? "attention"
         : holds(".router.")                     ? "router"
         : holds(".shared_expert")               ? "shared_expert"
         : holds(".experts.") || parameter.stack ? "experts"
         : holds(".mlp.")                        ? "mlp"
                                                 : "norms";
}

/// The settings' arithmetic, and for models that can be built the shapes of the built one.
void compare_counts(const Case& test, const config::Config& config, const Registries& registries, Comparison& out) {
  std::vector<std::pair<std::string, std::map<std::string, std::int64_t>>> sources;
  const auto parts = config::parameter_parts(config.model);
  sources.push_back({"settings", {parts.begin(), parts.end()}});
  std::map<std::string, std::int64_t> built;
  for (const ParameterPtr& parameter : build_model(config, registries)->parameters()) {
    built[part_of(*parameter)] += parameter->counted ? parameter->numel() : 0;
  }
  sources.emplace_back("model", built);
  for (const auto& [source, counts] : sources) {
    std::int64_t total = 0;
    Table table_of;
    for (const auto& [part, count] : counts) {
      total += count;
      table_of[part] = Node(count);
    }
    for (const char* key : {"num_params_estimate", "actual_parameters"}) {
      if (const Node* expected = test.expected(key)) {
        out.integer(std::string(key) + " of the " + source, total, integer(*expected, key));
      }
    }
    if (const Node* expected = test.expected("by_part")) {
      out.require("by_part", same(Node(table_of), *expected),
                  format("by_part of the {} is {}, expected {}", source, shown(Node(table_of)), shown(*expected)));
    }
  }
}

/// "mfu_at_10000_tok_s_one_gpu_989" -> tokens a second, GPUs, TFLOP/s each.
void compare_mfu(const std::string& key, double flops_per_token, double expected, Comparison& out) {
  const std::vector<std::string> words = split(key, '_');  // mfu at N tok s GPUS gpu(s) PEAK
  KF_CHECK(words.size() == 8, Code::other, "the runner cannot read '{}'", key);
  const double rate = std::stod(words[2]), gpus = words[5] == "one" ? 1 : std::stod(words[5]), peak = std::stod(words[7]);
  double now = 0;
  Throughput throughput(flops_per_token, peak * 1e12 * gpus, [&] { return now; });
  throughput.add(static_cast<std::int64_t>(rate));
  now = 1;
  out.number(key, throughput.take().mfu, expected, kMfu);
}

/// Batch size, length and accumulation of the preset that a case is named after: the shipped file, or for presets that are not shipped
/// (vision) the reference's dump in the folder beside. Nothing when neither knows it.
std::optional<config::Config> preset_of(const Case& test, const Settings& settings, const Registries& registries) {
  constexpr std::string_view prefix = "preset ";
  const std::string name = test.name.starts_with(prefix) ? test.name.substr(prefix.size()) : "";
  const fs::path file = settings.configs / name, dumps = test.folder / ".." / "config" / "configs.json";
  if (!name.empty() && fs::exists(file)) {
    config::Request request;
    request.job = file;
    request.files_must_exist = false;
    config::Loaded preset = config::load(request, registries.catalog());
    KF_CHECK(preset.report.problems.empty(), Code::config, "{}", config::to_text(preset.report));
    return std::move(preset.config);
  }
  if (fs::exists(dumps)) {
    const Node all = parse_json(read_file(dumps), dumps.string());
    if (const Node* dump = get(table(all, "configs.json"), name)) {
      const Table& train = table(at(table(*dump, name), "train"), "train");
      config::Config config;
      config.train.batch_size = integer(at(train, "batch_size"), "batch_size");
      config.train.seq_len = integer(at(train, "seq_len"), "seq_len");
      config.train.grad_accum_steps = integer(at(train, "grad_accum_steps"), "grad_accum_steps");
      return config;
    }
  }
  return std::nullopt;
}

/// tokens_per_step: dp4 and so on.
void compare_tokens(const Case& test, const Table& tokens, const Settings& settings, const Registries& registries, Comparison& out) {
  if (const std::optional<config::Config> preset = preset_of(test, settings, registries)) {
    for (const auto& [key, value] : tokens) {
      out.integer("tokens_per_step." + key, config::tokens_per_step(*preset, std::stoll(key.substr(2))), integer(value, key));
    }
  }
}

void run_preset(const Case& test, Comparison& out, const Settings& settings) {
  const Registries registries = native_registries();
  const std::int64_t seq_len = integer(at(test.expected(), "seq_len"), "seq_len");
  Table sections;
  put(sections, "model", table(test.at("config"), "config"));
  put(sections, "train", "seq_len", Node(seq_len));
  const config::Config config = job_of(sections, registries);
  compare_counts(test, config, registries, out);
  const double flops = config::flops_per_token(config.model, seq_len);
  const std::map<std::string, double> values = {
      {"flops_per_token", flops},
      {"head_dim", static_cast<double>(config::head_dim(config.model))},
      {"ffn_hidden", static_cast<double>(config::ffn_hidden_dim(config.model))},
      {"expert_ffn_hidden", static_cast<double>(config::expert_ffn_hidden_dim(config.model))},
  };
  for (const auto& [key, expected] : test.expected()) {
    if (expected.is_null()) {
      continue;
    }
    if (const auto found = values.find(key); found != values.end()) {
      out.number(key, found->second, number(expected, key), kExact);
    } else if (key.starts_with("mfu_at_")) {
      compare_mfu(key, flops, number(expected, key), out);
    }
  }
  if (const Node* tokens = test.get("tokens_per_step")) {
    compare_tokens(test, table(*tokens, "tokens_per_step"), settings, registries, out);
  }
}

void compare_widths(const Case& test, Comparison& out) {
  for (const Node& entry : list(test.at("expected"), "expected")) {
    const Table& row = table(entry, "expected");
    config::ModelConfig model;
    const double mult = number(at(row, "mult"), "mult");
    if (get(row, "dim")) {
      model.dim = integer(at(row, "dim"), "dim");
      model.ffn_dim_multiplier = mult;
      out.integer(shown(entry), config::ffn_hidden_dim(model), integer(at(row, "width"), "width"));
    } else {
      model.ffn_hidden_dim = integer(at(row, "ffn"), "ffn");
      model.moe_expert_ffn_multiplier = mult;
      out.integer(shown(entry), config::expert_ffn_hidden_dim(model), integer(at(row, "width"), "width"));
    }
  }
}

void compare_peaks(const Case& test, Comparison& out) {
  for (const Node& entry : list(test.at("expected"), "expected")) {
    const Table& row = table(entry, "expected");
    const std::string gpu = text(at(row, "gpu"), "gpu");
    if (const Node* tflops = get(row, "tflops")) {
      out.number(gpu, cuda_peak(gpu, 9).flops / 1e12, number(*tflops, "tflops"), kMfu);
    }
  }
}

void compare_smoothing(const Case& test, Comparison& out) {
  Smoothed smoothed;
  std::vector<double> actual;
  for (const double value : numbers(test.at("values"), "values")) {
    actual.push_back(smoothed.add(value));
  }
  out.numbers("smoothed", actual, numbers(test.at("expected"), "expected"), kMfu);
}

void compare_perplexity(const Case& test, Comparison& out) {
  for (const Node& entry : list(test.at("expected"), "expected")) {
    const Table& row = table(entry, "expected");
    if (const Node* expected = get(row, "perplexity")) {
      out.number("perplexity", perplexity(number(at(row, "loss"), "loss")), number(*expected, "perplexity"), kMfu);
    } else {
      config::Config config;
      config.train.batch_size = integer(at(row, "batch_size"), "batch_size");
      config.train.seq_len = integer(at(row, "seq_len"), "seq_len");
      config.train.grad_accum_steps = integer(at(row, "grad_accum"), "grad_accum");
      out.integer("tokens_per_step", config::tokens_per_step(config, integer(at(row, "dp"), "dp")),
                  integer(at(row, "tokens_per_step"), "tokens_per_step"));
    }
  }
}

/// Tables are told apart by what their rows hold.
void run_table(const Case& test, Comparison& out) {
  if (test.get("values")) {
    compare_smoothing(test, out);
    return;
  }
  const Table& row = table(list(test.at("expected"), "expected").at(0), "expected");
  if (get(row, "width")) {
    compare_widths(test, out);
  } else if (get(row, "gpu")) {
    compare_peaks(test, out);
  } else if (get(row, "loss") || get(row, "tokens_per_step")) {
    compare_perplexity(test, out);
  } else {
    fail(Code::other, "the runner knows no table '{}'", test.name);
  }
}

}  // namespace

void run_metrics(const Case& test, Comparison& out, const Settings& settings) {
  if (test.kind == "clip") {
    run_clip(test, out);
  } else if (test.kind == "preset") {
    run_preset(test, out, settings);
  } else if (test.kind == "table") {
    run_table(test, out);
  } else {
    fail(Code::other, "the runner knows no kind '{}' of metrics cases", test.kind);
  }
}

}  // namespace kf::parity
