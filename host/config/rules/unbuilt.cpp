#include "config/rules/unbuilt.h"

#include <algorithm>

#include "config/schema/schema.h"
#include "core/text.h"

namespace kf::config {
namespace {

/// What setting a key does meanwhile.
enum class Means { nothing, refusal };

struct UnbuiltKey {
  const char* key;
  std::vector<const char*> honest;  // the values that say what happens anyway, or work
  const char* reason;
  Means means = Means::nothing;
};

struct Unbuilt {
  const char* title;
  const char* sentence;  // what happens instead, for README
  std::vector<UnbuiltKey> keys;
};

constexpr const char* kDataParallel = "ranks share the data (dp_replicate, dp_shard) and the numbers of layers (tp) alone";

const std::vector<Unbuilt>& unbuilt() {
  static const std::vector<Unbuilt> all{
      {"Several GPUs or machines, and models split over ranks",
       "`kf-host --nproc N` trains with N processes on the CPU of one machine, which share the data and may share weights and moments "
       "(`distributed.dp_replicate`, `dp_shard`), or the numbers of each layer (`tp`). Other ways to split a job are checked (`kf-host "
       "config check JOB --world N`), and a run "
       "with them is refused; so the jobs of `configs/` for 8 to 32 GPUs can be checked, not run.",
       {{"distributed.pp", {"1"}, kDataParallel, Means::refusal},
        {"distributed.cp", {"1"}, kDataParallel, Means::refusal},
        {"distributed.ep", {"1"}, kDataParallel, Means::refusal},
        {"distributed.prefetch", {"true"}, "nothing is gathered ahead"},
        {"distributed.reduce_dtype", {"'fp32'"}, "gradients travel in fp32"},
        {"distributed.reduce_each_micro", {"false"}, "zero_stage says when gradients are reduced"},
        {"distributed.pp_schedule", {"'1f1b'"}, "there are no pipeline stages"},
        {"distributed.pp_chunks", {"2"}, "there are no pipeline stages"},
        {"distributed.pp_layers", {"[]"}, "there are no pipeline stages"},
        {"distributed.cp_method", {"'ring'"}, "there are no context-parallel ranks"},
        {"distributed.cp_order", {"'zigzag'"}, "there are no context-parallel ranks"},
        {"diloco.interval", {"0"}, "workers share gradients at every update", Means::refusal},
        {"diloco.outer_lr", {"0.7"}, "workers share gradients at every update"},
        {"diloco.outer_momentum", {"0.9"}, "workers share gradients at every update"},
        {"diloco.nesterov", {"true"}, "workers share gradients at every update"},
        {"diloco.exchange_dtype", {"'fp32'"}, "workers share gradients at every update"},
        {"distributed.backend", {"'cpu:gloo,cuda:nccl'"}, "ranks are on CPUs and talk over Gloo"},
        {"train.nccl_health_check_interval", {"0"}, "there is no communicator of NCCL to check"}}},
      {"fp8",
       "A run in fp8 is refused; bf16, fp16 and fp32 work.",
       {{"train.mixed_precision", {"'bf16'", "'fp16'", "'fp32'"}, "there are no fp8 products; take bf16", Means::refusal}}},
      {"Weights & Biases and TensorBoard",
       "Rows go to `metrics.jsonl`, to CSV and to sinks written in Lua; these settings are read and do nothing.",
       {{"metrics.enable_wandb", {"false"}, "there is no Weights & Biases sink"},
        {"metrics.wandb_project", {"'kempnerforge'"}, "there is no Weights & Biases sink"},
        {"metrics.wandb_run_name", {"null"}, "there is no Weights & Biases sink"},
        {"metrics.wandb_run_id", {"''"}, "there is no Weights & Biases sink"},
        {"metrics.enable_tensorboard", {"false"}, "there is no TensorBoard sink"},
        {"metrics.tensorboard_dir", {"'tb_logs'"}, "there is no TensorBoard sink"}}},
      {"Profiling",
       "`[profiling]` is read and does nothing.",
       {{"profiling.enable", {"false"}, "there is no profiler"},
        {"profiling.start_step", {"5"}, "there is no profiler"},
        {"profiling.end_step", {"8"}, "there is no profiler"},
        {"profiling.trace_dir", {"'profiler_traces'"}, "there is no profiler"}}},
      {"Quantized weights", "Quantized files are refused, so adapters (`[adapter]`) stand beside weights of full precision.", {}},
  };
  return all;
}

/// Calls `visit` with every key of the table.
template <typename Visit>
void each_key(Visit visit) {
  for (const Unbuilt& feature : unbuilt()) {
    for (const UnbuiltKey& key : feature.keys) {
      visit(key);
    }
  }
}

bool is_honest(const UnbuiltKey& key, const std::string& value) {
  return std::any_of(key.honest.begin(), key.honest.end(), [&](const char* honest) { return value == honest; });
}

}  // namespace

std::vector<std::string> keys_without_effect(const Loaded& loaded) {
  std::vector<std::string> out;
  each_key([&](const UnbuiltKey& key) {
    const std::string value = to_text(find_row(key.key)->get(loaded.config));
    if (key.means == Means::nothing && find_node(loaded.merged, key.key) && !is_honest(key, value)) {
      out.push_back(format("{} = {} has no effect yet: {}", key.key, value, key.reason));
    }
  });
  return out;
}

std::vector<std::string> keys_refused(const Config& config) {
  std::vector<std::string> out;
  each_key([&](const UnbuiltKey& key) {
    const std::string value = to_text(find_row(key.key)->get(config));
    if (key.means == Means::refusal && !is_honest(key, value)) {
      out.push_back(format("{} = {} is not built yet: {}", key.key, value, key.reason));
    }
  });
  return out;
}

std::optional<std::string> unbuilt_note(const std::string& wanted) {
  std::optional<std::string> out;
  each_key([&](const UnbuiltKey& key) {
    if (key.key == wanted && key.means == Means::nothing) {
      out = format("No effect yet: {}.", key.reason);
    } else if (key.key == wanted) {
      std::vector<std::string> works(key.honest.begin(), key.honest.end());
      out = format("Not built yet: {}; a run takes {} only.", key.reason, join(works, ", "));
    }
  });
  return out;
}

std::string unbuilt_markdown() {
  std::string out;
  for (const Unbuilt& feature : unbuilt()) {
    std::vector<std::string> keys;
    for (const UnbuiltKey& key : feature.keys) {
      keys.push_back(format("`{}`", key.key));
    }
    out += format("- **{}.** {}{}\n", feature.title, feature.sentence, keys.empty() ? "" : " Settings: " + join(keys, ", ") + ".");
  }
  return out;
}

}  // namespace kf::config
