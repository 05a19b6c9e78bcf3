#pragma once
// Which part of which tensor lies in which file: what more than one rank writes beside its files.
//
// {"weight_map": {"norm.weight": "model-00001-of-00002.safetensors"},    tensors that lie whole in one file, as Hugging Face has it
//  "tensors": {"norm.weight": {"shape": [32], "parts": [{"file": "model-00001-of-00002.safetensors", "begin": [0], "size": [32],
//                                                        "type": "F32", "offset": 5120, "crc32": "0badcafe"}]}, ...}}
//
// type, offset (in the file) and digest of a part's bytes are not there in indices of earlier versions.
// A part stands in its file under the tensor's name; where that holds several of one tensor, the further ones say theirs ("as").

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/files/pieces.h"
#include "checkpoint/files/safetensors.h"
#include "config/tree/node.h"
#include "core/fs.h"

namespace kf {

struct StoredPiece {
  std::string file;  // beside the index
  std::string name;  // in the file
  Range range;
  std::optional<StoredBytes> bytes = {};  // once it has been written
};

struct StoredTensor {
  Shape shape;  // of the whole
  std::vector<StoredPiece> parts;
};

using PieceIndex = std::map<std::string, StoredTensor>;  // by name

/// Adds the parts that another file holds. Throws Code::checkpoint where the two say that a tensor has different shapes.
void add(PieceIndex& index, const PieceIndex& more);

/// Throws Code::checkpoint naming a tensor of which the parts do not add up to the whole: one is missing, or was written twice.
void check_complete(const PieceIndex& index, const fs::path& path);

config::Node to_node(const PieceIndex& index);
/// Throws Code::checkpoint naming `path` where `node` is something else. Ranges lie inside of their tensors then.
PieceIndex piece_index_from(const config::Node& node, const fs::path& path);

}  // namespace kf
