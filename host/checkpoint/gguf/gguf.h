#pragma once
// Trained models for llama.cpp.

#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "checkpoint/gguf/file.h"
#include "config/schema/config.h"
#include "core/fs.h"
#include "data/tokenizer/tokenizer.h"

namespace kf {

struct GgufModel {
  const config::Config& config;
  std::vector<std::pair<std::string, at::Tensor>> weights;  // by our names, whole, without adapters (merged_weights)
  const Tokenizer& tokenizer;
  fs::path tokenizer_file;         // a tokenizer.json, or the folder with it; "" for bytes
  bool begins_with_bos;            // texts do, as the model was trained
  std::string name;                // for people
  std::string chat_template = {};  // "": what stands beside the tokenizer
};

/// Writes a GGUF file: matrices in `type`, norms and biases in F32. Models as architecture_of takes them. Throws Code::config, data or
/// checkpoint saying what does not fit; an older file of that name then stays.
void write_gguf(const fs::path& path, const GgufModel& model, gguf::Type type);

}  // namespace kf
