#pragma once
// Weights of GGUF files, as llama.cpp has them. What they say of their model is in config/huggingface/gguf.h.

#include <cstdint>
#include <memory>
#include <string>

#include "checkpoint/files/weights.h"
#include "config/tree/gguf.h"
#include "core/fs.h"

namespace kf::gguf {

/// An open file. Copies share what is open.
class OpenFile {
 public:
  /// Throws Code::checkpoint, or data where it is no ordinary file.
  explicit OpenFile(const fs::path& path);

  const fs::path& path() const;
  const Header& header() const;

  /// Under the file's own names, ranges as they are asked for: Q8_0 as float32.
  NamedTensors tensors() const;
  /// `theirs`, tensors of this file maybe under other names, under ours: renamed, rows of queries and keys by halves (model.rope_layout =
  /// "half"), norms less 1 where the model adds it. Names that llama.cpp does not have for such models are kept. Throws Code::checkpoint
  /// for an architecture that is not read, and where heads do not divide rows.
  NamedTensors as_ours(const NamedTensors& theirs) const;

  /// Of queries, and of keys and values; 0 where the header does not say it.
  std::int64_t heads() const;
  std::int64_t kv_heads() const;

 private:
  struct Contents;
  std::shared_ptr<const Contents> contents_;
};

/// Into the model, by the rules of `load_weights_from`; `rules.names` changes the file's own names. Throws Code::checkpoint.
void load_file(const fs::path& path, Model& model, const VocabRows& rows, const Placements& placements, const LoadRules& rules = {});

}  // namespace kf::gguf
