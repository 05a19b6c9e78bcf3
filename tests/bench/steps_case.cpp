#include "bench/steps_case.h"

#include <ATen/ATen.h>

#include <fstream>
#include <memory>
#include <random>

#include "checkpoint/files/safetensors.h"
#include "checkpoint/files/weights.h"
#include "config/load/load.h"
#include "core/text.h"
#include "data/loader/loader.h"
#include "model/transformer/build.h"
#include "registry/registries.h"

namespace kf::bench {
namespace {

constexpr const char* kJob = R"([model]
dim = {}
n_layers = {}
n_heads = {}
n_kv_heads = {}
vocab_size = {}
max_seq_len = {}
num_experts = {}
moe_aux_loss_weight = 0

[train]
batch_size = {}
seq_len = {}
mixed_precision = "{}"
grad_clip_norm = 1.0

[optimizer]
lr = 1e-3
weight_decay = 0.1

[scheduler]
name = "constant"
warmup_steps = 0

[data]
dataset_path = "tokens.bin"
token_dtype = "uint16"
eos_id = 0
shuffle = "none"
pack_sequences = {}

[eval]
enabled = false

[checkpoint]
init_from = "weights.safetensors"
interval = 1000000
on_completion = false
)";

constexpr const char* kCase =
    R"({"dim": {}, "layers": {}, "heads": {}, "kv_heads": {}, "vocab": {}, "length": {}, "hidden": {}, "experts": {},
"top_k": 2, "eps": 1e-5, "theta": 10000.0, "batch": {}, "batches": {}, "checked": {}, "packed": {}, "precision": "{}",
"lr": 1e-3, "betas": [0.9, 0.95], "adam_eps": 1e-8, "weight_decay": 0.1, "clip": 1.0})";

constexpr std::int64_t kExperts = 8;

std::int64_t hidden(const StepCase& one) { return (8 * one.dim / 3 + 255) / 256 * 256; }  // model.ffn_hidden_dim's default

/// Documents of about 60 tokens (0 ends one), each a walk through the vocabulary with a stride of its own: something to learn.
void write_tokens(const StepCase& one, const fs::path& path) {
  std::mt19937 source(1);
  const auto draw = [&] { return static_cast<std::uint32_t>(source()); };
  std::vector<std::uint16_t> tokens(static_cast<std::size_t>(kBatches * one.batch * one.length + 1));
  std::uint32_t at = 1, stride = 1;
  for (std::uint16_t& token : tokens) {
    if (draw() % 60 == 0) {
      token = 0;
      at = draw();
      stride = 1 + draw() % 8;
    } else {
      at += stride;
      token = static_cast<std::uint16_t>(1 + at % static_cast<std::uint32_t>(one.vocab - 1));
    }
  }
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(tokens.data()), static_cast<std::streamsize>(tokens.size() * sizeof(std::uint16_t)));
}

void write_batches(const config::Config& config, const StepCase& one, const fs::path& path) {
  const std::unique_ptr<Loader> loader = make_train_loader(config, {});
  std::ofstream out(path, std::ios::binary);
  const auto write = [&](const at::Tensor& part) {
    const at::Tensor whole = part.contiguous();
    out.write(static_cast<const char*>(whole.const_data_ptr()), static_cast<std::streamsize>(whole.nbytes()));
  };
  for (std::int64_t i = 0; i < kBatches; ++i) {
    const Batch batch = loader->batch(i);
    write(batch.tokens);
    write(batch.labels);
    if (one.form == StepCase::Form::packed) {
      write(batch.doc_ids);
    }
  }
}

}  // namespace

const char* StepCase::form_name() const { return form == Form::dense ? "dense" : form == Form::experts ? "experts" : "packed"; }

std::vector<StepCase> step_cases(const std::string& model) {
  using Form = StepCase::Form;
  std::vector<StepCase> all;
  for (const char* precision : {"fp32", "bf16"}) {
    all.push_back({"tiny", 64, 2, 4, 256, 32, 1, precision, Form::dense});
    for (const Form form : {Form::dense, Form::experts, Form::packed}) {
      all.push_back({"small", 256, 4, 8, 4096, 256, 8, precision, form});
    }
    all.push_back({"debug", 256, 4, 4, 32000, 512, 4, precision, Form::dense});
  }
  std::erase_if(all, [&](const StepCase& one) { return !model.empty() && one.model != model; });
  return all;
}

void write_case(const StepCase& one, const fs::path& folder, const Registries& registries) {
  const std::int64_t experts = one.form == StepCase::Form::experts ? kExperts : 0;
  const bool packed = one.form == StepCase::Form::packed;
  write_tokens(one, folder / "tokens.bin");
  std::ofstream(folder / "job.toml") << format(kJob, one.dim, one.layers, one.heads, one.heads, one.vocab, one.length, experts, one.batch,
                                               one.length, one.precision, packed);
  std::ofstream(folder / "case.json") << format(kCase, one.dim, one.layers, one.heads, one.heads, one.vocab, one.length, hidden(one),
                                                experts, one.batch, kBatches, kChecked, packed, one.precision);
  config::Request request;
  request.job = folder / "job.toml";
  request.overrides = {"--data.dataset_path=" + (folder / "tokens.bin").string(), "--checkpoint.init_from=null"};
  const config::Config config = config::load_or_fail(request, registries.catalog()).config;
  const std::shared_ptr<Model> model = build_model(config, registries);
  materialize(*model, at::kCPU, at::kFloat, 1);
  write_safetensors(folder / "weights.safetensors", weights_of(*model));
  write_batches(config, one, folder / "batches.bin");
}

}  // namespace kf::bench
