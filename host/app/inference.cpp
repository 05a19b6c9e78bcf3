#include "app/inference.h"

#include "checkpoint/manager.h"
#include "config/load.h"
#include "core/error.h"
#include "model/build.h"
#include "registry/registries.h"

namespace kf {
namespace {

bool is_checkpoint(const fs::path& path) { return fs::exists(path / "state.json"); }

fs::path find_checkpoint(const fs::path& source) {
  if (is_checkpoint(source)) {
    return source;
  }
  for (const fs::path& folder : {source, source / "checkpoints"}) {
    if (fs::is_directory(folder)) {
      CheckpointOptions options;
      options.dir = folder;
      if (const auto newest = CheckpointManager(std::move(options)).newest()) {
        return *newest;
      }
    }
  }
  fail(Code::checkpoint, "{} is no checkpoint, and none lies in it or in its folder 'checkpoints'", source);
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
  const fs::path checkpoint = find_checkpoint(source);
  config::Request request;
  request.job = checkpoint / "job.toml";
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
