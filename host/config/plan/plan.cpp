#include "config/plan/plan.h"

#include <algorithm>
#include <utility>

#include "config/plan/budget.h"
#include "config/plan/derived.h"
#include "config/plan/sinks.h"
#include "core/text.h"

namespace kf::config {
namespace {

/// The default lies below the run's folder, a path of the user's own below the working folder.
fs::path output_folder(const std::string& path, const std::string& fallback, const fs::path& run) {
  return path == fallback ? run / path : fs::path(path);
}

std::string budget_note(const Config& config, const Plan& plan) {
  const std::int64_t budget = *config.train.max_tokens;
  const std::int64_t spare = plan.max_steps * plan.tokens_per_step - budget;
  const SchedulerConfig& s = config.scheduler;
  const std::int64_t length = schedule_length(s, plan.max_steps);
  const std::int64_t warmup = s.warmup_steps.of(length);
  const std::int64_t stable = s.stable_steps.value_or(0).of(length);
  const std::int64_t decay = s.decay_steps ? s.decay_steps->of(length) : std::max<std::int64_t>(0, length - warmup - stable);
  const std::string passed = spare == 0 ? "" : format(" (rounded up: {} tokens past the budget)", grouped(spare));
  return format("train.max_tokens = {} at {} tokens a step is {} steps{}: warm-up {}, decay {}", grouped(budget),
                grouped(plan.tokens_per_step), grouped(plan.max_steps), passed, grouped(warmup), grouped(decay));
}

}  // namespace

Plan make_plan(const Loaded& loaded, const fs::path& file, std::int64_t world, bool gpu_present) {
  const Config& config = loaded.config;
  Plan plan;
  plan.name = !config.run.name.empty() ? config.run.name : !file.stem().empty() ? file.stem().string() : "run";
  plan.dir = config.run.dir.empty() ? fs::path("runs") / plan.name : fs::path(config.run.dir);
  plan.device = config.run.device != "auto" ? config.run.device : gpu_present ? "cuda" : "cpu";
  plan.world = world;
  plan.mesh = Mesh::of_world(degrees_of(config.distributed), world);
  plan.data_ranks = plan.mesh.readers();
  plan.tokens_per_step = tokens_per_step(config, plan.data_ranks);
  plan.max_steps = effective_max_steps(config, world);
  plan.checkpoint_dir = output_folder(config.checkpoint.dir, CheckpointConfig().dir, plan.dir);
  plan.sinks = sink_list(config.metrics);
  plan.tensorboard_dir = output_folder(config.metrics.tensorboard_dir, MetricsConfig().tensorboard_dir, plan.dir);
  plan.trace_dir = output_folder(config.profiling.trace_dir, ProfilingConfig().trace_dir, plan.dir);
  plan.token_dtype = config.data.token_dtype.value_or(config.model.vocab_size <= 65536 ? "uint16" : "uint32");
  if (config.train.max_tokens) {
    plan.notes.push_back(budget_note(config, plan));
  }
  for (std::string& line : missing_sinks(plan.sinks)) {
    plan.notes.push_back(std::move(line));
  }
  const ModelConfig& m = config.model;
  if (is_moe(m) && scores_by_sigmoid(m) && m.moe_sequence_aux_loss_weight > 0 && m.moe_aux_loss_weight != 1) {
    plan.notes.push_back(
        format("model.moe_sequence_aux_loss_weight ({}) counts as it is; KempnerForge multiplies it by model.moe_aux_loss_weight ({}): for "
               "its numbers give {}",
               m.moe_sequence_aux_loss_weight, m.moe_aux_loss_weight, m.moe_sequence_aux_loss_weight * m.moe_aux_loss_weight));
  }
  return plan;
}

}  // namespace kf::config
