#pragma once
// checkpoint.save_frozen = false: weights that never train stay where they came from, and a checkpoint says which and from where.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/files/pieces.h"
#include "config/tree/node.h"
#include "core/fs.h"
#include "model/model.h"

namespace kf {

/// The weights that a checkpoint leaves out.
struct LeftOut {
  std::string from;                   // checkpoint.init_from
  std::uint32_t crc32 = 0;            // of their bytes, in the order of the names
  std::vector<std::string> names;     // state-dict names; empty: nothing is left out
  std::vector<at::ScalarType> types;  // of those bytes: 16-bit runs keep frozen weights in 16 bits

  bool contains(const std::string& name) const;
  /// `tensor` in the type that the weight of this name had: what was trained beside it. As it is where the name is none of them.
  at::Tensor as_it_was(const std::string& name, const at::Tensor& tensor) const;
};

/// Whole ones alone can be left out so far. Throws Code::checkpoint where a frozen weight of `model` lies here in part.
void check_frozen_whole(Model& model, const Placements& placements);

/// The frozen weights of `model` (train.frozen, train.trainable), which came from `from`. Buffers are none: they may change.
LeftOut frozen_weights(Model& model, const std::string& from);

config::Node to_node(const LeftOut& out);
/// Throws Code::checkpoint where `node` is something else; null is nothing left out.
LeftOut left_out_from(const config::Node& node, const fs::path& path);

/// Throws Code::checkpoint where the weights of `model` named in `out`, rounded as they were then, are not the bytes that the checkpoint
/// was saved beside. A model that holds fewer bits than those cannot tell, and the log says so.
void check_left_out(const LeftOut& out, Model& model, const fs::path& checkpoint);

}  // namespace kf
