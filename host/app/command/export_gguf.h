#pragma once
// `kf-host export CHECKPOINT FILE.gguf`: a model for llama.cpp.

#include <string>

#include "app/script/inference.h"
#include "core/fs.h"

namespace kf {

/// Writes the model with its tokenizer; `dtype`: F32, F16, BF16 or Q8_0, "" for F16.
void export_gguf(const LoadedModel& loaded, const fs::path& file, const std::string& dtype);

}  // namespace kf
