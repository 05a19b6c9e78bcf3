// peft: adapters in the folder format of PEFT, written by it or by this program: the logits that PEFT computes with them.

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/GradMode.h>

#include "builtins/builtins.h"
#include "checkpoint/files/weights.h"
#include "checkpoint/huggingface/import.h"
#include "checkpoint/peft.h"
#include "core/plain_file.h"
#include "model/transformer/adapters.h"
#include "model/transformer/build.h"
#include "parity/areas.h"
#include "parity/job.h"
#include "support/temp_dir.h"

namespace kf::parity {
namespace {

// Rounding in fp32 moves logits of up to 5 by 3e-6 to 5e-6.
const Tolerance kLogits{{{1e-5, 0}}};
constexpr double kMoved = 0.01;  // what the adapters of the cases change of the logits, at least

config::Config job_of_case(const Case& test, const fs::path& base, const Registries& registries) {
  Table sections;
  const at::Tensor tokens = test.tensor("input_ids");
  put(sections, "train", "batch_size", Node(tokens.size(0)));
  put(sections, "train", "seq_len", Node(tokens.size(1)));
  put(sections, "train", "mixed_precision", Node(std::string("fp32")));
  put(sections, "checkpoint", "init_from", Node(base.string()));
  put(sections, "adapter", "name", Node(std::string("lora")));
  put(sections, "adapter", "path", Node(test.folder.string()));
  for (const char* key : {"targets", "rank", "alpha"}) {
    put(sections, "adapter", key, test.at(key));
  }
  return job_of(sections, registries);
}

std::shared_ptr<Model> with_fresh_values(const config::Config& config, const Registries& registries) {
  std::shared_ptr<Model> model = build_model(config, registries);
  materialize(*model, at::kCPU, at::kFloat, 0);
  model->train(false);
  return model;
}

at::Tensor logits_of(Model& model, const Case& test) {
  ForwardContext context;
  return model.forward(test.tensor("input_ids").to(at::kLong), context);
}

/// The model without adapters, these merged into its weights.
std::shared_ptr<Model> merged(Model& model, config::Config config, const Registries& registries) {
  config.adapter = {};
  std::shared_ptr<Model> whole = with_fresh_values(config, registries);
  std::map<std::string, at::Tensor> by_name;
  NamedTensors tensors;
  for (auto& [name, tensor] : merged_weights(model)) {
    tensors.names.push_back(name);
    by_name[name] = std::move(tensor);
  }
  tensors.get = [&by_name](const std::string& name) { return by_name.at(name); };
  load_weights_from(tensors, "the merged weights", *whole);
  return whole;
}

/// This program still writes the folder that PEFT opened when the case was made.
void compare_writing(const Case& test, const config::Config& config, const fs::path& base, Model& model, Comparison& out) {
  const test::TempDir dir;
  write_peft(dir.path(), model, config.adapter, base.string());
  std::string text = read_file(dir / "adapter_config.json");
  if (const auto at = text.find(base.string()); at != std::string::npos) {
    text.replace(at, base.string().size(), "org/base");
  }
  out.same_text("adapter_config.json", text, read_file(test.folder / "adapter_config.json"));
  const SafetensorsFile ours(dir / "adapter_model.safetensors"), theirs = test.open("adapter_model.safetensors");
  out.same_text("names", join(ours.names(), " "), join(theirs.names(), " "));
  for (const std::string& name : theirs.names()) {
    out.require(name, ours.contains(name) && at::equal(ours.tensor(name), theirs.tensor(name)), name + " is not what was written before");
  }
}

}  // namespace

void run_peft(const Case& test, Comparison& out) {
  const Registries registries = native_registries();
  const fs::path base = fs::canonical(test.folder / text(test.at("base"), "base"));
  const config::Config config = job_of_case(test, base, registries);
  const at::NoGradGuard no_grad;
  const std::shared_ptr<Model> model = with_fresh_values(config, registries);
  load_huggingface(base, *model);
  const at::Tensor expected = test.tensor("logits");
  const at::Tensor before = logits_of(*model, test);
  out.require("the adapter's part", (before - expected).abs().max().item<double>() > kMoved, "the adapter changes nothing");
  read_peft(config.adapter, base.string(), *model);
  out.tensor("logits", logits_of(*model, test), expected, kLogits);
  out.tensor("merged logits", logits_of(*merged(*model, config, registries), test), expected, kLogits);
  if (test.kind == "written by kf-host") {
    compare_writing(test, config, base, *model, out);
  }
}

}  // namespace kf::parity
