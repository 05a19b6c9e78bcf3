#pragma once
// The tiny model with experts in every layer.

#include "support/tiny.h"

namespace kf::test {

/// 4 experts of width 16, two a token.
inline config::Config moe_config() {
  config::Config c = tiny_config();
  c.model.num_experts = 4;
  c.model.moe_top_k = 2;
  c.model.moe_ffn_dim = 16;
  return c;
}

}  // namespace kf::test
