#include "config/unbuilt.h"

#include <algorithm>
#include <map>

#include "config/derived.h"
#include "config/layers.h"
#include "config/names.h"
#include "config/schema.h"
#include "core/text.h"

namespace kf::config {
namespace {

struct Unbuilt {
  const char* key;
  const char* reason;
};

/// Keys that are read and checked, and do nothing yet.
const std::vector<Unbuilt>& unbuilt_keys() {
  static const std::vector<Unbuilt> all{
      {"model.sdpa_backend", "attention always takes the kernel that LibTorch picks"},
      {"train.compile_model", "there are no fused kernels yet; both settings run the plain operators"},
      {"train.activation_checkpointing", "activations are always kept"},
      {"train.shutdown_timeout_sec", "a signal ends the run after the running step, however long that takes"},
      {"train.nccl_health_check_interval", "there is no communicator to check yet"},
      {"optimizer.fused", "there is one implementation of the update"},
      {"optimizer.muon_momentum", "muon is not built yet"},
      {"optimizer.muon_ns_steps", "muon is not built yet"},
      {"optimizer.muon_adam_lr", "muon is not built yet"},
      {"optimizer.schedule_free_warmup_steps", "schedule_free_adamw is not built yet"},
      {"data.num_workers", "batches are read by the training thread"},
      {"data.pin_memory", "batches are read by the training thread"},
      {"data.prefetch_factor", "batches are read by the training thread"},
      {"data.hf_streaming", "Hugging Face data sets are not read yet"},
      {"distributed.pp_schedule", "there are no pipeline stages yet"},
      {"distributed.nccl_timeout_sec", "there is no communicator yet"},
      {"distributed.backend", "there is no communicator yet"},
      {"checkpoint.async_mode", "checkpoints are written by the training thread"},
      {"checkpoint.export_dtype", "there is no export yet"},
      {"checkpoint.exclude_from_loading", "a checkpoint is always loaded whole"},
      {"metrics.enable_wandb", "there is no Weights & Biases sink yet"},
      {"metrics.wandb_project", "there is no Weights & Biases sink yet"},
      {"metrics.wandb_run_name", "there is no Weights & Biases sink yet"},
      {"metrics.wandb_run_id", "there is no Weights & Biases sink yet"},
      {"metrics.enable_tensorboard", "there is no TensorBoard sink yet"},
      {"metrics.tensorboard_dir", "there is no TensorBoard sink yet"},
      {"profiling.enable", "there is no profiler yet"},
  };
  return all;
}

const std::map<std::string, std::vector<std::string>>& planned() {
  static const std::map<std::string, std::vector<std::string>> all{
      {"optimizer", {"lion", "schedule_free_adamw", "muon"}},
      {"router", {"softmax_topk", "sigmoid_topk"}},
      {"loss", {"chunked_cross_entropy"}},
      {"ckpt_strategy", {"power2"}},
  };
  return all;
}

}  // namespace

std::vector<std::string> planned_parts(const std::string& kind) {
  const auto found = planned().find(kind);
  return found == planned().end() ? std::vector<std::string>() : found->second;
}

std::vector<std::string> missing_parts(const Loaded& loaded, const Catalog& catalog) {
  std::vector<std::string> out;
  for (const Row& row : rows()) {
    if (row.check.kind.empty() || row.type != Type::text || (row.check.experts_only && !is_moe(loaded.config.model))) {
      continue;
    }
    const std::string name = std::get<std::string>(row.get(loaded.config).value);
    const auto found = catalog.find(row.check.kind);
    const bool here = found != catalog.end() && std::any_of(found->second.begin(), found->second.end(), [&](const PartInfo& part) {
                        return part.name == (row.check.kind == "mlp" ? mlp_name(name) : name);
                      });
    if (!here) {
      out.push_back(format("{} = '{}': this build has no such {} yet", row.key(), name, row.check.kind));
    }
  }
  return out;
}

std::vector<std::string> keys_without_effect(const Loaded& loaded) {
  std::vector<std::string> out;
  for (const Unbuilt& unbuilt : unbuilt_keys()) {
    const Row& row = *find_row(unbuilt.key);
    const Node value = row.get(loaded.config);
    if (find_node(loaded.merged, unbuilt.key) && !(value == row.fallback)) {
      out.push_back(format("{} = {} has no effect yet: {}", unbuilt.key, to_text(value), unbuilt.reason));
    }
  }
  return out;
}

}  // namespace kf::config
