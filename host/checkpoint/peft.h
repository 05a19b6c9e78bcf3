#pragma once
// LoRA in the folder format of Hugging Face's PEFT: adapter_config.json and adapter_model.safetensors.

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

#include "config/schema/config.h"
#include "core/fs.h"
#include "model/model.h"

namespace kf {

/// The matrices of the adapters of a model by our names, "layers.0.attention.q_proj.lora.a".
using AdapterTensors = std::vector<std::pair<std::string, at::Tensor>>;
AdapterTensors adapter_tensors(Model& model);

/// Writes the LoRA of `model` into `folder`. `base` is the model that it was trained beside (checkpoint.init_from), "" where there is none:
/// a Hugging Face folder gives its tensors' names, anything else Llama's. Layers that the family lacks, or holds in another form than ours,
/// keep our names, and the log says so. Throws Code::config for another kind of adapter.
void write_peft(const fs::path& folder, Model& model, const config::AdapterConfig& adapter, const std::string& base);

/// Reads such a folder (adapter.path) into the adapters of `model`. Throws Code::config where its rank or alpha are not those of `adapter`,
/// or where it is of a kind that is not built (DoRA, rank-stabilised scales, trained biases, ranks by layer, first values that change the
/// base model's weights), and Code::checkpoint where
/// its tensors are not those of the layers that adapter.targets names.
void read_peft(const config::AdapterConfig& adapter, const std::string& base, Model& model);

}  // namespace kf
