#pragma once
// Weights by name from whatever holds them, without a model.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/files/weights.h"
#include "checkpoint/state_file.h"
#include "core/fs.h"

namespace kf {

/// Open weights. Copies share what is open.
struct WeightsAt {
  enum class Kind { checkpoint, file, huggingface };
  Kind kind = Kind::file;
  fs::path path;                   // the step_N folder, the file, the folder of Hugging Face
  NamedTensors tensors;            // `ranged`; a folder of Hugging Face has its own names
  std::optional<StateFile> state;  // of a checkpoint
  std::shared_ptr<void> opened;    // what `tensors` reads
};

/// A checkpoint or the folder of a run (its newest one), a .safetensors or GGUF file (under our names), an index of parts (.json), or a
/// folder with a config.json. Files of a checkpoint are read against their checksums. Throws Code::checkpoint.
WeightsAt open_weights(const fs::path& source);

/// Weights whose numbers are no good, as they were read: "NAME (3 of 128)".
using Spoiled = std::vector<std::string>;
/// Adds `name` where `bad` (a mask) holds anything.
void note_spoiled(Spoiled& out, const std::string& name, const at::Tensor& bad);

/// The same tensors; numbers with a fraction in this type. What is finite and becomes infinite there is noted in `too_large` whenever a
/// tensor is read; it outlives what is returned.
NamedTensors in_type(NamedTensors tensors, at::ScalarType type, Spoiled& too_large);

/// How a stack of experts stands in a file.
enum class ExpertForm { packed, each };
/// The same tensors under our names, stacks of experts in this form, by their names alone ("...mlp.gate_w",
/// "...mlp.experts.3.gate_proj.weight"). Throws Code::checkpoint where an expert of a stack is missing or has another shape.
NamedTensors with_experts(const NamedTensors& tensors, ExpertForm form, const fs::path& path);

/// Writes `tensors` one after the other: into a file where `target` ends with .safetensors, else into a folder like that of `like`, whose
/// settings it has: a checkpoint without an optimizer's state, so that runs start from it (checkpoint.init_from) and none goes on, or a
/// folder of Hugging Face. Throws Code::checkpoint; what has the name already is left as it is.
void write_weights(const fs::path& target, const NamedTensors& tensors, const WeightsAt& like);

}  // namespace kf
