#include "config/plan/recomputation.h"

#include <algorithm>

namespace kf::config {
namespace {

bool has(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::vector<std::string> kept_by(const std::string& policy) {
  if (policy == "minimal") {
    return {"q", "k", "v", "kv", "out", "gate", "up", "down"};
  }
  std::vector<std::string> out;
  if (policy != "save_out_proj") {
    out = {"q", "k", "v", "kv"};
  }
  if (policy != "save_qkv_proj") {
    out.emplace_back("out");
  }
  if (policy == "save_dot_with_context_except_mlp") {
    out.emplace_back("context");
  }
  if (policy == "save_dot_except_mlpwi") {
    out.emplace_back("down");
  }
  return out;
}

bool recomputes(const TrainConfig& train, std::int64_t layer) {
  return train.activation_checkpointing != "none" && layer % train.remat_every == 0;
}

bool runs_again(const TrainConfig& train, std::int64_t layer, std::string_view branch) {
  return recomputes(train, layer) && !(train.activation_checkpointing == "selective" && has(train.remat_save, branch));
}

bool keeps_result(const TrainConfig& train, std::int64_t layer, std::string_view result) {
  if (!recomputes(train, layer)) {
    return true;
  }
  if (train.activation_checkpointing == "full") {
    return false;
  }
  if (train.activation_checkpointing != "selective") {
    return has(kept_by(train.activation_checkpointing), result);
  }
  const std::vector<std::string>& saved = train.remat_save;
  const bool products =
      std::any_of(saved.begin(), saved.end(), [](const std::string& name) { return name.find("::") != std::string::npos; });
  if (saved.empty() || products) {
    return true;
  }
  const bool mlp = result == "gate" || result == "up" || result == "down" || result.empty();
  const bool qkv = result == "q" || result == "k" || result == "v" || result == "kv";
  return has(saved, result) || has(saved, mlp ? "mlp" : "attention") || (qkv && has(saved, "qkv")) ||
         (result == "kv" && (has(saved, "k") || has(saved, "v")));
}

}  // namespace kf::config
