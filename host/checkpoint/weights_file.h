#pragma once
// Weights in a single file, of this program or another's.

#include "checkpoint/files/weights.h"
#include "core/fs.h"

namespace kf {

/// Into the model, by the rules of `load_weights_from`. What a file is says its content, whatever its name: one of torch.save (.pt, .pth,
/// .bin, .ckpt; also nanoGPT's), llm.c's, GGUF, safetensors, or the index of such. Throws Code::checkpoint.
void load_weights_file(const fs::path& path, Model& model, const VocabRows& rows, const Placements& placements,
                       const LoadRules& rules = {});

}  // namespace kf
