#pragma once
// Where a pipeline cuts a model.

#include <cstdint>
#include <vector>

#include "config/schema/config.h"

namespace kf::config {

/// The layers [first, end) of a model that one stage has; whether it makes hidden states of tokens, and logits of hidden states.
struct Stage {
  std::int64_t first = 0;
  std::int64_t end = 0;
  bool embeds = true;
  bool heads = true;
};

/// All of a model.
Stage whole_stage(const ModelConfig& model);

/// `stages` consecutive pieces of at least one layer each, so that the dearest one is as cheap as can be, then all of them as even as can
/// be; of equal cuts the one with more layers in front. Cost is that of a token (`layer_flops`, `head_flops`). Throws Code::config for more
/// stages than layers, or fewer than one.
std::vector<Stage> cut_stages(const ModelConfig& model, std::int64_t stages, std::int64_t seq_len);

}  // namespace kf::config
