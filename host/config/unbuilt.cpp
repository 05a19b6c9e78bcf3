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
  const char* honest;  // the value that says what happens anyway; none where every value has no effect
  const char* reason;
};

/// Keys that are read and checked, and do nothing yet.
const std::vector<Unbuilt>& unbuilt_keys() {
  static const std::vector<Unbuilt> all{
      {"train.shutdown_timeout_sec", "600", "a signal ends the run after the running step, however long that takes"},
      {"train.nccl_health_check_interval", "0", "there is no communicator to check yet"},
      {"data.num_workers", "0", "batches are read by the training thread"},
      {"data.pin_memory", "false", "batches are read by the training thread"},
      {"data.prefetch_factor", "", "batches are read by the training thread"},
      {"data.hf_streaming", "false", "Hugging Face data sets are not read yet"},
      {"distributed.pp_schedule", "'1f1b'", "there are no pipeline stages yet"},
      {"distributed.nccl_timeout_sec", "1800", "there is no communicator yet"},
      {"distributed.backend", "'cpu:gloo,cuda:nccl'", "there is no communicator yet"},
      {"checkpoint.async_mode", "'disabled'", "checkpoints are written by the training thread"},
      {"checkpoint.export_dtype", "'bfloat16'", "there is no export yet"},
      {"checkpoint.exclude_from_loading", "[]", "a checkpoint is always loaded whole"},
      {"metrics.enable_wandb", "false", "there is no Weights & Biases sink yet"},
      {"metrics.wandb_project", "'kempnerforge'", "there is no Weights & Biases sink yet"},
      {"metrics.wandb_run_name", "null", "there is no Weights & Biases sink yet"},
      {"metrics.wandb_run_id", "''", "there is no Weights & Biases sink yet"},
      {"metrics.enable_tensorboard", "false", "there is no TensorBoard sink yet"},
      {"metrics.tensorboard_dir", "'tb_logs'", "there is no TensorBoard sink yet"},
      {"profiling.enable", "false", "there is no profiler yet"},
  };
  return all;
}

const std::map<std::string, std::vector<std::string>>& planned() {
  static const std::map<std::string, std::vector<std::string>> all{};
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
    if (!row.check.experts_only && name == std::get<std::string>(row.fallback.value)) {
      continue;  // the default is there, if not under its name yet
    }
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
    const std::string value = to_text(find_row(unbuilt.key)->get(loaded.config));
    if (find_node(loaded.merged, unbuilt.key) && value != unbuilt.honest) {
      out.push_back(format("{} = {} has no effect yet: {}", unbuilt.key, value, unbuilt.reason));
    }
  }
  return out;
}

}  // namespace kf::config
