#pragma once
// Checkpoints of llm.c (model_*.bin): a header of 256 integers, then the tensors of a GPT-2 one after the other, each kind for all layers.

#include <cstddef>
#include <span>

#include "checkpoint/foreign/gpt2.h"

namespace kf {

/// Whether a file begins as such a one does.
bool is_llmc(std::span<const std::byte> bytes);

struct LlmcFile {
  NamedTensors tensors;  // under nanoGPT's names
  Gpt2Settings settings;
};

/// Opens it: fp32 (version 3) or bf16 (version 5). The embedding has `rows` rows where the file has as many (it pads the vocabulary), else
/// those of the vocabulary. Throws Code::checkpoint naming the file and what is wrong with it.
LlmcFile open_llmc(const fs::path& path, std::int64_t rows);

}  // namespace kf
