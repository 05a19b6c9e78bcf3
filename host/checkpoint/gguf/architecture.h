#pragma once
// Which of llama.cpp's models a model is, and what its weights are called and how they lie there.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "config/schema/config.h"
#include "model/placement.h"

namespace kf::gguf {

class File;

/// One tensor of the file, made of one of ours.
struct TensorRule {
  std::string theirs;
  std::string ours;
  std::int64_t paired_heads = 0;  // above 0: rows of heads whose halves rotate together; there, neighbours do
  bool add_one = false;           // a norm that multiplies by 1 + weight; there, by the weight
};

struct Architecture {
  std::string name;                 // general.architecture: llama, qwen2, qwen3, gemma
  std::vector<TensorRule> tensors;  // those that a model may have; biases and a head of its own among them
};

/// Of dense models with rotary positions as Llama, Mistral, Qwen 2 and 3 and Gemma are. Throws Code::config listing every key of [model]
/// that llama.cpp's models have no place for.
Architecture architecture_of(const config::Config& config);

/// The sizes and constants of the model.
void write_settings(const Architecture& architecture, const config::ModelConfig& model, File& out);

/// Divisors of the rotary frequencies (model.rope_scaling = "llama3"), a tensor of the file; empty for other models.
std::vector<float> frequency_divisors(const config::ModelConfig& model);

}  // namespace kf::gguf
