#pragma once

#include "support/tiny.h"

namespace kf::test {

/// Of a model wide enough that the tensors which an estimate of memory counts are most of what there is.
inline config::Config wide_config() {
  config::Config config = tiny_config();
  config.run.device = "cpu";
  config.model.dim = 128;
  config.model.n_layers = 4;
  config.model.n_heads = 4;
  config.model.n_kv_heads = 2;
  config.model.vocab_size = 1000;
  config.model.max_seq_len = 256;
  config.train.batch_size = 4;
  config.train.seq_len = 128;
  config.eval.enabled = false;
  return config;
}

}  // namespace kf::test
