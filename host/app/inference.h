#pragma once
// A model and its tokenizer from a checkpoint, for reading only.

#include <memory>

#include "config/config.h"
#include "core/fs.h"
#include "data/tokenizer/tokenizer.h"
#include "model/model.h"
#include "registry/registries.h"
#include "train/generate.h"

namespace kf {

struct LoadedModel {
  config::Config config;
  std::shared_ptr<Model> model;
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<TokenSampler> sampler;  // generate.strategy
};

std::unique_ptr<TokenSampler> sampler_of(const config::Config& config, const Registries& registries);
/// [generate], without a strategy.
GenerateOptions generate_options(const config::GenerateConfig& config);

/// What turns the job's token ids into text; null where nothing does: pre-tokenized files (.npy, .bin) without data.tokenizer_path, or a
/// vocabulary too small for bytes.
std::unique_ptr<Tokenizer> tokenizer_of(const config::Config& config, const Registries& registries);

/// `source` is a checkpoint folder, or a run or checkpoints folder whose latest one is meant. Weights in fp32, evaluation mode.
/// Throws Code::checkpoint.
LoadedModel load_for_inference(const fs::path& source, at::Device device);
/// With the parts that a script has registered, too.
LoadedModel load_for_inference(const fs::path& source, at::Device device, const Registries& registries);

}  // namespace kf
