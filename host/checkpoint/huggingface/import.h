#pragma once
// The weights of a folder as Hugging Face's save_pretrained writes it, under our names and in our layout.

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/files/weights.h"
#include "core/fs.h"
#include "model/model.h"

namespace kf {

/// model.safetensors or pytorch_model.bin, or the shards that model.safetensors.index.json or pytorch_model.bin.index.json name;
/// safetensors first. Throws Code::checkpoint naming what is missing.
NamedTensors open_huggingface(const fs::path& folder);

/// `theirs` under our names: tensors are renamed, transposed and cut by the table of the family that `folder`'s config.json names. Shapes
/// of `model` say where fused ones are cut. Names that the table lacks are kept as they are, so that whoever reads them finds them unknown;
/// buffers without effect are left out.
NamedTensors as_ours(const NamedTensors& theirs, const fs::path& folder, Model& model);

/// Both, and into the model: `checkpoint.init_from` on a folder with a config.json. Types may be any real ones; one error lists what is
/// missing, unknown or misshapen. `rules.names` changes the names that the family's table is asked for.
void load_huggingface(const fs::path& folder, Model& model, const VocabRows& rows = {}, const Placements& placements = own_placement,
                      const LoadRules& rules = {});

}  // namespace kf
