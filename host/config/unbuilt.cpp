#include "config/unbuilt.h"

#include "config/layers.h"
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
      {"train.nccl_health_check_interval", "0", "there is no communicator to check yet"},
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

}  // namespace

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
