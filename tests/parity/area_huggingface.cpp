// hf: models as Hugging Face writes them: config.json in both spellings, logits, loss, gradients, a greedy continuation.

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/GradMode.h>

#include <algorithm>

#include "builtins/builtins.h"
#include "checkpoint/huggingface/import.h"
#include "config/huggingface/huggingface.h"
#include "generate/generate.h"
#include "model/transformer/build.h"
#include "parity/areas.h"
#include "parity/job.h"
#include "parity/weights.h"

namespace kf::parity {
namespace {

const Tolerance kLogits{{{1e-4, 0}}};  // README: logits 1e-4 absolute, loss 1e-5, gradients 1e-3 relative L2 a tensor
const Tolerance kLoss{{{1e-5, 0}}};
const Tolerance kGradient{{{1e-3, 0}}};
constexpr double kNothing = 1e-7;  // norm of a difference that is rounding, also where the gradient itself is zero but for it

/// The job around a folder's weights, and around the [model] keys of another spelling where there are some.
config::Config job_around(const Case& test, const Registries& registries, const Table& model) {
  Table sections;
  const at::Tensor tokens = test.tensor("input_ids");
  put(sections, "model", model);
  put(sections, "train", "batch_size", Node(tokens.size(0)));
  put(sections, "train", "seq_len", Node(tokens.size(1)));
  put(sections, "train", "mixed_precision", Node(std::string("fp32")));
  put(sections, "checkpoint", "init_from", Node(test.folder.string()));
  return job_of(sections, registries);
}

std::shared_ptr<Model> loaded(const Case& test, const config::Config& config, const Registries& registries) {
  std::shared_ptr<Model> model = build_model(config, registries);
  materialize(*model, at::kCPU, at::kFloat, 0);
  model->train(false);
  load_huggingface(test.folder, *model);
  return model;
}

/// Mean over the labels that count: position t predicts label t + 1.
at::Tensor mean_loss(const at::Tensor& logits, const at::Tensor& labels) {
  const std::int64_t length = logits.size(1) - 1;
  return at::cross_entropy_loss(logits.narrow(1, 0, length).flatten(0, 1), labels.narrow(1, 1, length).flatten());
}

/// The gradients of the file, under our names; zeros for buffers, which have none.
NamedTensors expected_gradients(const Case& test, Model& model) {
  NamedTensors theirs;
  theirs.names = test.tensors("grad.");
  theirs.get = [&test](const std::string& name) { return test.tensor("grad." + name); };
  NamedTensors ours = as_ours(theirs, test.folder, model);
  for (const ParameterPtr& parameter : model.parameters()) {
    const std::string& name = parameter->name;
    if (name.ends_with(".expert_bias") && std::find(ours.names.begin(), ours.names.end(), name) == ours.names.end()) {
      ours.names.push_back(name);
      ours.get = [get = ours.get, name, shape = parameter->shape](const std::string& asked) {
        return asked == name ? at::zeros(shape) : get(asked);
      };
    }
  }
  return ours;
}

void compare_gradient(const std::string& name, const at::Tensor& actual, const at::Tensor& expected, Comparison& out) {
  const double scale = expected.norm().item<double>();
  const double off = (actual.to(at::kDouble) - expected.to(at::kDouble)).norm().item<double>();
  out.number("grad." + name, off < kNothing ? 0 : off / scale, 0, kGradient);
}

/// A second model takes the gradients in as if they were weights: so names and layouts are those of the weights. Stacks by slices.
void compare_gradients(const Case& test, Model& model, Model& twin, Comparison& out) {
  load_weights_from(expected_gradients(test, model), test.folder, twin);
  const ParameterList expected = twin.parameters();
  const ParameterList actual = model.parameters();
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const at::Tensor gradient = gradient_of(*actual[i]);
    const at::Tensor right = expected[i]->master.detach();
    if (gradient.dim() < 3) {
      compare_gradient(actual[i]->name, gradient, right, out);
      continue;
    }
    for (std::int64_t slice = 0; slice < gradient.size(0); ++slice) {
      compare_gradient(actual[i]->name + "[" + std::to_string(slice) + "]", gradient[slice], right[slice], out);
    }
  }
}

void compare_generation(const Case& test, Model& model, Comparison& out) {
  const at::Tensor prompt = test.tensor("gen_prompt").to(at::kLong).flatten().contiguous();
  const at::Tensor expected = test.tensor("gen_ids").to(at::kLong).flatten().contiguous();
  GenerateOptions options;
  options.max_new_tokens = expected.numel();
  options.temperature = 0;
  const auto* ids = prompt.const_data_ptr<std::int64_t>();
  const auto* right = expected.const_data_ptr<std::int64_t>();
  out.integers("gen_ids", generate_ids(model, {ids, ids + prompt.numel()}, options, std::nullopt, at::kCPU),
               {right, right + expected.numel()});
}

void compare_forward(const Case& test, Model& model, const std::string& prefix, Comparison& out) {
  ForwardContext context;
  const at::Tensor logits = model.forward(test.tensor("input_ids").to(at::kLong), context);
  const at::Tensor loss = mean_loss(logits, test.tensor("labels").to(at::kLong));
  out.tensor(prefix + "logits", logits.detach(), test.tensor("logits"), kLogits);
  out.number(prefix + "loss", loss.item<double>(), test.tensor("loss").item<double>(), kLoss);
  if (loss.requires_grad()) {
    loss.backward();
  }
}

}  // namespace

void run_huggingface(const Case& test, Comparison& out) {
  const Registries registries = native_registries();
  const auto model = loaded(test, job_around(test, registries, {}), registries);
  compare_forward(test, *model, "", out);
  compare_gradients(test, *model, *loaded(test, job_around(test, registries, {}), registries), out);
  compare_generation(test, *model, out);

  const fs::path other = test.folder / "config_v4.json";
  if (fs::exists(other)) {
    std::vector<std::string> problems;
    const Table keys = config::model_of_config_json(other, problems);
    out.require("config_v4.json", problems.empty(), join(problems, "; "));
    const at::NoGradGuard no_grad;
    compare_forward(test, *loaded(test, job_around(test, registries, keys), registries), "config_v4 ", out);
  }
}

}  // namespace kf::parity
