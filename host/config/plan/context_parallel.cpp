#include "config/plan/context_parallel.h"

namespace kf::config {

std::string why_no_ring(const Config& config) {
  const ModelConfig& m = config.model;
  if (m.attention == "mla") {
    return "model.attention = \"mla\" gathers its latent, which is smaller than keys and values";
  }
  if (m.dropout_attn > 0) {
    return "model.dropout_attn drops scores of all keys at once";
  }
  if (m.attn_fp32 == "none") {
    return "model.attn_fp32 = \"none\" has no fp32 sums of exponentials to join by";
  }
  if (config.optimizer.qk_clip) {
    return "optimizer.qk_clip looks at the scores of all keys";
  }
  return "";
}

bool uses_ring(const Config& config) { return config.distributed.cp_method == "ring" && why_no_ring(config).empty(); }

}  // namespace kf::config
