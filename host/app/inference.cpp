#include "app/inference.h"

#include "checkpoint/manager.h"
#include "config/load.h"
#include "config/toml.h"
#include "core/error.h"
#include "model/build.h"
#include "registry/registries.h"

namespace kf {
namespace {

/// The settings of a checkpoint that say what the model is and how its text is read: how it was trained does not matter here, and parts
/// that a script registered for that (hooks, schedules, losses) need not exist.
config::Node inference_job(const fs::path& file) {
  config::Report report;
  std::optional<config::Table> job;
  if (fs::exists(file)) {
    job = config::parse_toml(read_file(file), file.string(), config::Origin::Kind::toml, report);
  }
  KF_CHECK(job && report.problems.empty(), Code::checkpoint, "{} cannot be read as a job: the checkpoint is damaged or of another program",
           file);
  for (const char* section : {"hooks",  "phases",    "hook",        "phase",         "optimizer", "scheduler",  "loss",
                              "metric", "metrics",   "sink",        "dataset",       "transform", "checkpoint", "ckpt_strategy",
                              "eval",   "profiling", "distributed", "parallel_plan", "averaging", "run"}) {
    job->erase(section);
  }
  if (config::Node* train = job->find("train"); train != nullptr && train->table() != nullptr) {
    config::Table kept;
    if (const config::Node* seq_len = train->table()->find("seq_len")) {
      kept["seq_len"] = *seq_len;
    }
    *train = config::Node(std::move(kept));
  }
  if (config::Node* data = job->find("data"); data != nullptr && data->table() != nullptr) {
    const config::Node* sources = data->table()->find("datasets");
    if (sources != nullptr && sources->array() != nullptr && !sources->array()->empty() && sources->array()->front().table() != nullptr) {
      if (const config::Node* path = sources->array()->front().table()->find("path")) {
        config::Node first = *path;
        (*data->table())["dataset_path"] = std::move(first);  // its kind tells whether the model learned from text or from ids
      }
    }
    for (const char* key : {"datasets", "phases", "anneal_weights", "anneal_start_step", "holdout"}) {
      data->table()->erase(key);
    }
  }
  return config::Node(std::move(*job), {config::Origin::Kind::recipe, file.string(), 0, 0, {}});
}

}  // namespace

std::unique_ptr<Tokenizer> tokenizer_of(const config::Config& config, const Registries& registries) {
  const config::DataConfig& d = config.data;
  const auto is_token_pattern = [](const std::string& pattern) { return pattern.ends_with(".npy") || pattern.ends_with(".bin"); };
  const bool from_files = !d.datasets.empty() || !d.dataset_path.empty();
  const bool tokens = from_files && (is_token_pattern(d.file_pattern) || is_token_pattern(d.dataset_path));
  if (d.tokenizer_path.empty() && (tokens || config.model.vocab_size < kByteVocab)) {
    return nullptr;
  }
  return make_tokenizer(config, &registries);
}

std::unique_ptr<TokenSampler> sampler_of(const config::Config& config, const Registries& registries) {
  const std::string& name = config.generate.strategy;
  return registries.sampler.get(name).factory({config, Registries::options_of(config, "sampler", name), registries});
}

GenerateOptions generate_options(const config::GenerateConfig& config) {
  GenerateOptions options;
  options.max_new_tokens = config.max_new_tokens;
  options.temperature = config.temperature;
  options.top_k = config.top_k;
  options.top_p = config.top_p;
  return options;
}

LoadedModel load_for_inference(const fs::path& source, at::Device device) {
  return load_for_inference(source, device, native_registries());
}

LoadedModel load_for_inference(const fs::path& source, at::Device device, const Registries& registries) {
  const fs::path checkpoint = CheckpointManager::find(source);
  config::Request request;
  request.recipe = inference_job(checkpoint / "job.toml");
  request.files_must_exist = false;
  LoadedModel out;
  out.config = config::load_or_fail(request, registries.catalog()).config;
  out.model = build_model(out.config, registries);
  materialize(*out.model, device, at::kFloat, 0);
  CheckpointManager::load_weights(checkpoint, *out.model);
  out.model->train(false);
  out.tokenizer = tokenizer_of(out.config, registries);
  out.sampler = sampler_of(out.config, registries);
  return out;
}

}  // namespace kf
