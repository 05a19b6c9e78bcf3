// model: hidden states, logits, losses, gradients, one update, generation, bf16; and the loss functions alone.

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/GradMode.h>

#include <cmath>
#include <map>

#include "builtins/builtins.h"
#include "generate/generate.h"
#include "optim/clip.h"
#include "parity/areas.h"
#include "parity/job.h"
#include "parity/weights.h"
#include "train/step/loss.h"

namespace kf::parity {
namespace {

constexpr Bound kGradient{2e-6, 2e-4};  // README: gradients of models
constexpr Bound kNorm{0, 1e-5};         // README: grad_norm
constexpr Bound kUpdated{1e-6, 1e-5};   // README: updated.* from the stored gradients
constexpr double kBf16Loss = 5e-3;      // README: loss of bf16 logits in fp32

struct Setup {
  explicit Setup(const Case& of) : test(of) {}

  const Case& test;
  const Registries registries = native_registries();
  config::Config config;
  at::Tensor tokens, labels;  // (B, T)
  double z_weight = 0;
};

Setup set_up(const Case& test) {
  Setup setup(test);
  setup.tokens = test.tensor("input_ids").to(at::kLong);
  setup.labels = test.tensor("labels").to(at::kLong);
  setup.z_weight = number(test.at("z_loss_weight"), "z_loss_weight");
  Table sections;
  put(sections, "model", table(test.at("config"), "config"));
  put(sections, "train", "batch_size", Node(setup.tokens.size(0)));
  put(sections, "train", "seq_len", Node(setup.tokens.size(1)));
  put(sections, "train", "mixed_precision", Node(std::string("fp32")));
  put(sections, "train", "z_loss_weight", Node(setup.z_weight));
  put(sections, "train", "ce_chunk_size", test.at("chunk_size"));
  if (const Node* update = test.get("update")) {
    put(sections, "optimizer", table(*update, "update"));
  }
  setup.config = job_of(sections, setup.registries);
  return setup;
}

ForwardContext context_of(const Case& test) {
  ForwardContext context;
  if (test.has_tensor("doc_ids")) {
    context.doc_ids = test.tensor("doc_ids").to(at::kLong);
  }
  return context;
}

std::int64_t counted(const at::Tensor& labels) { return labels.ne(-100).sum().item<std::int64_t>(); }

/// Cross entropy per counted label, 0 when there is none.
at::Tensor mean_loss(const Loss& loss, const at::Tensor& logits, const at::Tensor& labels) {
  const at::Tensor sum = loss.sum(logits.flatten(0, -2), labels.flatten());
  return sum / static_cast<double>(std::max<std::int64_t>(1, counted(labels)));
}

void compare_gradients(const Case& test, Model& model, const std::string& prefix, Comparison& out) {
  const std::vector<std::string> names = test.tensors(prefix);
  if (names.empty()) {
    return;
  }
  const Tolerance tolerance = test.tolerance("gradients", {kGradient});
  for (const ParameterPtr& parameter : model.parameters()) {
    const std::vector<std::string> held = names_in(test, model, prefix, parameter->name);
    for (const std::string& name : held) {
      out.tensor(name, gradient_of(*parameter), test.tensor(name), tolerance);
    }
    if (held.empty()) {
      out.require(prefix + parameter->name, false, "the case has no " + prefix + parameter->name);
    }
  }
}

void compare_number(const Case& test, const std::string& key, double actual, const Tolerance& tolerance, Comparison& out) {
  if (const Node* expected = test.expected(key)) {
    out.number(key, actual, number(*expected, key), tolerance);
  }
}

void compare_logits(const Case& test, const at::Tensor& logits, Comparison& out) {
  out.tensor("logits", logits, test.tensor("logits"), test.tolerance("logits"));
  const at::Tensor wide = logits.detach().to(at::kDouble);
  // Rounding errors of single logits (1e-6 is what is seen) add up like a random walk in the sum.
  const double drift = 1e-5 * std::sqrt(static_cast<double>(wide.numel()));
  compare_number(test, "logits_sum", wide.sum().item<double>(), Tolerance{{{drift, 0}}}, out);
  compare_number(test, "logits_l2", wide.norm().item<double>(), Tolerance{{{0, 1e-5}}}, out);
}

/// Forward and the gradients of both losses.
void compare_training(const Setup& setup, Model& model, Comparison& out) {
  const Case& test = setup.test;
  std::map<std::string, at::Tensor> seen;
  ForwardContext context = context_of(test);
  context.observe = [&](const std::string& name, const at::Tensor& value) { seen[name] = value.detach(); };
  const at::Tensor logits = model.forward(setup.tokens, context);
  for (const std::string& name : test.tensors("hidden.")) {
    out.tensor("hidden." + name, seen[name], test.tensor("hidden." + name), test.tolerance("logits"));
  }
  compare_logits(test, logits, out);

  const auto loss = make_loss(setup.config, setup.registries, "cross_entropy");
  const at::Tensor ce = mean_loss(*loss, logits, setup.labels);
  const auto chunked = make_loss(setup.config, setup.registries, "chunked_cross_entropy");
  const at::Tensor positions = logits.flatten(0, -2);
  const at::Tensor z = z_loss_sum(positions) * (setup.z_weight / static_cast<double>(positions.size(0)));
  const at::Tensor total = ce + z;
  const Tolerance losses = test.tolerance("losses");
  compare_number(test, "loss_ce", ce.item<double>(), losses, out);
  compare_number(test, "loss_chunked", mean_loss(*chunked, logits.detach(), setup.labels).item<double>(), losses, out);
  compare_number(test, "loss_z", z.item<double>(), losses, out);
  compare_number(test, "loss_total", total.item<double>(), losses, out);
  if (const Node* valid = test.expected("n_valid_labels")) {
    out.integer("n_valid_labels", counted(setup.labels), integer(*valid, "n_valid_labels"));
  }

  ce.backward({}, /*retain_graph=*/true);
  compare_gradients(test, model, "grads_ce.", out);
  for (const ParameterPtr& parameter : model.parameters()) {
    parameter->clear_gradient();
  }
  total.backward();
  compare_gradients(test, model, "grads.", out);
  compare_number(test, "grad_norm", gradient_norm(model.parameters()).item<double>(), test.tolerance("grad_norm", {kNorm}), out);
}

/// One optimizer step from the stored gradients.
void compare_update(const Setup& setup, Model& model, Comparison& out) {
  const Case& test = setup.test;
  if (!test.get("update")) {
    return;
  }
  const ParameterList parameters = model.parameters();
  for (const ParameterPtr& parameter : parameters) {
    parameter->set_gradient(tensor_in(test, model, "grads.", parameter->name));
  }
  make_optimizer(setup.config, setup.registries, parameters)->step(setup.config.optimizer.lr);
  for (const ParameterPtr& parameter : parameters) {
    for (const std::string& name : names_in(test, model, "updated.", parameter->name)) {
      out.tensor(name, parameter->master, test.tensor(name), Tolerance{{kUpdated}});
    }
    out.require("updated." + parameter->name, !names_in(test, model, "updated.", parameter->name).empty(),
                "the case has no updated." + parameter->name);
  }
}

/// Each prompt and its most likely continuation, row by row.
at::Tensor greedy(Model& model, const at::Tensor& prompts, std::int64_t new_tokens) {
  GenerateOptions options;
  options.max_new_tokens = new_tokens;
  options.temperature = 0;
  std::vector<at::Tensor> rows;
  for (const at::Tensor& prompt : prompts.unbind(0)) {
    const at::Tensor ids = prompt.contiguous();
    const std::vector<std::int64_t> given(ids.const_data_ptr<std::int64_t>(), ids.const_data_ptr<std::int64_t>() + ids.numel());
    const std::vector<std::int64_t> answer = generate_ids(model, given, options, std::nullopt, at::kCPU);
    rows.push_back(at::cat({ids, at::tensor(answer, at::kLong)}));
  }
  return at::stack(rows);
}

void compare_generation(const Setup& setup, Model& model, Comparison& out) {
  const Case& test = setup.test;
  if (const Node* generate = test.get("generate")) {
    const Table& options = table(*generate, "generate");
    KF_CHECK(number(at(options, "temperature"), "temperature") == 0, Code::other, "the runner compares greedy generation only");
    const std::int64_t count = integer(at(options, "max_new_tokens"), "max_new_tokens");
    out.tensor("gen_tokens", greedy(model, test.tensor("gen_prompt").to(at::kLong), count), test.tensor("gen_tokens"), Tolerance{{{}}});
  }
}

/// Same weights in bf16: as far from the reference's bf16 logits as those are from fp32, at most one and a half times.
void compare_bf16(const Setup& setup, Comparison& out) {
  const Case& test = setup.test;
  if (!test.has_tensor("logits_bf16")) {
    return;
  }
  const at::NoGradGuard no_grad;
  const at::Tensor stored = test.tensor("logits_bf16");
  const auto model = model_of(test, setup.config, setup.registries, at::kBFloat16, out);
  ForwardContext context = context_of(test);
  const at::Tensor ours = model->forward(setup.tokens, context);
  const double rms = (ours.to(at::kDouble) - stored.to(at::kDouble)).square().mean().sqrt().item<double>();
  if (const Node* scale = test.expected("bf16_vs_fp32_logits_rms")) {
    out.number("bf16 logits (rms of the difference)", rms, 0, Tolerance{{{1.5 * number(*scale, "bf16_vs_fp32_logits_rms"), 0}}});
  }
  const auto loss = make_loss(setup.config, setup.registries, "cross_entropy");
  const double value = mean_loss(*loss, stored.to(at::kBFloat16), setup.labels).item<double>();
  for (const char* key : {"loss_ce_bf16_logits", "loss_ce_of_bf16_logits_in_fp32"}) {
    compare_number(test, key, value, Tolerance{{{kBf16Loss, 0}}}, out);
  }
}

/// Variants of labels over the same logits.
void run_loss_functions(const Case& test, Comparison& out) {
  const Registries registries = native_registries();
  const at::Tensor logits = test.tensor("logits");
  const double weight = number(test.at("z_loss_weight"), "z_loss_weight");
  const auto loss_with = [&](const std::string& name, const Node& chunk) {
    Table sections;
    put(sections, "train", "ce_chunk_size", chunk);
    return make_loss(job_of(sections, registries), registries, name);
  };
  const auto plain = loss_with("cross_entropy", test.at("chunk_size"));
  const auto chunked = loss_with("chunked_cross_entropy", test.at("chunk_size"));
  const auto one_chunk = loss_with("chunked_cross_entropy", Node(logits.size(0)));
  const Tolerance tolerance = test.tolerance("losses");
  for (const auto& [variant, entry] : test.expected()) {
    if (!entry.table()) {
      continue;
    }
    const at::Tensor labels = test.tensor("labels." + variant);
    const at::Tensor low = logits.to(at::kBFloat16);
    const double z = z_loss_sum(logits).item<double>() * weight / static_cast<double>(logits.size(0));
    const std::map<std::string, double> actual = {
        {"cross_entropy", mean_loss(*plain, logits, labels).item<double>()},
        {"right", mean_loss(*plain, logits, labels).item<double>()},
        {"chunked", mean_loss(*chunked, logits, labels).item<double>()},
        {"chunked_one_chunk", mean_loss(*one_chunk, logits, labels).item<double>()},
        {"z_loss", z},
        {"bf16_logits_reference", mean_loss(*plain, low, labels).item<double>()},
        {"bf16_logits_right", mean_loss(*plain, low, labels).item<double>()},
        {"bf16_logits_chunked_reference", mean_loss(*chunked, low, labels).item<double>()},
    };
    for (const auto& [key, value] : *entry.table()) {
      if (const auto found = actual.find(key); found != actual.end() && !value.is_null()) {
        const bool bf16 = key.starts_with("bf16");
        out.number(variant + "." + key, found->second, number(value, key), bf16 ? Tolerance{{{kBf16Loss, 0}}} : tolerance);
      }
    }
    if (test.has_tensor("grad." + variant)) {
      const at::Tensor leaf = logits.clone().requires_grad_();
      (mean_loss(*plain, leaf, labels) + z_loss_sum(leaf) * (weight / static_cast<double>(leaf.size(0)))).backward();
      out.tensor("grad." + variant, leaf.grad(), test.tensor("grad." + variant), Tolerance{{{1e-7, 1e-5}}});
    }
  }
}

}  // namespace

void run_model(const Case& test, Comparison& out) {
  if (test.kind == "loss_functions") {
    run_loss_functions(test, out);
    return;
  }
  KF_CHECK(test.kind.empty(), Code::other, "the runner knows no kind '{}' of model cases", test.kind);
  const Setup setup = set_up(test);
  const auto model = model_of(test, setup.config, setup.registries, at::kFloat, out);
  compare_training(setup, *model, out);
  compare_generation(setup, *model, out);
  compare_update(setup, *model, out);
  compare_bf16(setup, out);
}

}  // namespace kf::parity
