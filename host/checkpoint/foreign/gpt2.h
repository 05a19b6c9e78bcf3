#pragma once
// GPT-2 as nanoGPT and llm.c have it: the names of Hugging Face's, with matrices as (out, in).

#include <cstdint>
#include <optional>
#include <string>

#include "checkpoint/files/weights.h"
#include "checkpoint/pickle/saved_file.h"
#include "core/fs.h"

namespace kf {

/// What a file says of its model, and what the job's settings have to be for it.
struct Gpt2Settings {
  std::string program;     // "nanoGPT"
  std::string activation;  // as model.activation
  std::int64_t layers = 0, heads = 0, dim = 0, vocab = 0, positions = 0;
  bool biases = true;
};

/// What a training checkpoint of nanoGPT says (`model_args`); nothing for any other file.
std::optional<Gpt2Settings> nanogpt_settings(const pickle::SavedFile& file);

/// The same tensors under our names: q, k and v are thirds of one, which are read by themselves; masks are left out. Throws
/// Code::checkpoint naming `path` where they lie as (in, out).
NamedTensors gpt2_as_ours(const NamedTensors& theirs, const fs::path& path);

/// Into the model. An error says what the settings have to be. What shapes do not show, the number of heads, is compared first.
void load_gpt2(const NamedTensors& theirs, const Gpt2Settings& settings, const fs::path& path, Model& model, const VocabRows& rows,
               const Placements& placements, const LoadRules& rules = {});

}  // namespace kf
