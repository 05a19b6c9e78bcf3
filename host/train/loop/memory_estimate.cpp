#include "train/loop/memory_estimate.h"

#include <algorithm>
#include <functional>

#include "config/plan/activation_bytes.h"
#include "train/loop/planned_weights.h"

namespace kf {

MemoryEstimate training_memory(const config::Config& config, const ParameterList& parameters, std::int64_t world) {
  return plan::fullest_rank(config, planned_weights(config, parameters), plan::Layout::of(config, world));
}

MemoryEstimate machine_memory(const config::Config& config, const ParameterList& parameters, std::int64_t world,
                              const plan::RankRange& here) {
  return plan::ranks_together(config, planned_weights(config, parameters), plan::Layout::of(config, world), here);
}

MemoryEstimate inference_memory(const config::Config& config, const ParameterList& parameters, double rows, double positions) {
  double weights = 0;
  for (const ParameterPtr& p : parameters) {
    weights += 4 * static_cast<double>(p->numel());
  }
  config::Config plain = config;
  plain.train.mixed_precision = "fp32";
  const double length = positions > 0 ? positions : static_cast<double>(config.train.seq_len);
  const config::ActivationBytes passing = config::activation_bytes(plain, rows, length, false, planned_weights(plain, parameters).adapters);
  MemoryEstimate out;
  out.take_fuller(positions > 0 ? "generation" : "an evaluation",
                  {{"weights", weights},
                   {"keys and values", positions > 0 ? config::cache_bytes(config.model, rows, positions, 4) : 0},
                   {"activations", passing.passing},
                   {"logits", passing.logits}});
  return std::move(out).finished();
}

Savers memory_savers(const config::Config& config, const ParameterList& parameters, std::int64_t world, const plan::RankRange& here) {
  struct Change {
    std::string words;
    std::function<bool(config::Config&)> make;  // false: it is so already
  };
  const auto set = [](std::string& value, const char* wanted) {
    const bool changes = value != wanted;
    value = wanted;
    return changes;
  };
  const std::vector<Change> changes{
      {"train.activation_checkpointing = \"full\"", [&](config::Config& c) { return set(c.train.activation_checkpointing, "full"); }},
      {"train.batch_size = 1 (and more of train.grad_accum_steps)",
       [](config::Config& c) {
         const bool changes = c.train.batch_size > 1;
         c.train.grad_accum_steps *= c.train.batch_size;
         c.train.batch_size = 1;
         return changes && c.phases.empty();
       }},
      {"train.loss_fn = \"fused_linear_cross_entropy\"",
       [&](config::Config& c) { return c.train.loss_fn == "cross_entropy" && set(c.train.loss_fn, "fused_linear_cross_entropy"); }},
      {"train.mixed_precision = \"bf16\"",
       [&](config::Config& c) { return c.train.mixed_precision == "fp32" && set(c.train.mixed_precision, "bf16"); }},
      {"train.param_dtype = \"bf16\" (no fp32 weights)",
       [&](config::Config& c) { return c.train.mixed_precision == "bf16" && set(c.train.param_dtype, "bf16"); }},
      {"optimizer.state_dtype_m and state_dtype_v = \"bf16\"",
       [&](config::Config& c) {
         const bool m = set(c.optimizer.state_dtype_m, "bf16");
         const bool v = set(c.optimizer.state_dtype_v, "bf16");
         return c.optimizer.name == "adamw" && (m || v);
       }},
      {"optimizer.state_dtype_m and state_dtype_v = \"int8\"",
       [&](config::Config& c) {
         const bool m = set(c.optimizer.state_dtype_m, "int8");
         const bool v = set(c.optimizer.state_dtype_v, "int8");
         return c.optimizer.name == "adamw" && (m || v);
       }},
      {"train.grad_dtype = \"bf16\"",
       [&](config::Config& c) { return c.train.mixed_precision == "bf16" && set(c.train.grad_dtype, "bf16"); }},
      {"optimizer.name = \"adam_mini\"",
       [&](config::Config& c) { return c.optimizer.name == "adamw" && set(c.optimizer.name, "adam_mini"); }},
  };
  const double now = machine_memory(config, parameters, world, here).total();
  Savers out;
  for (const Change& change : changes) {
    config::Config other = config;
    if (change.make(other)) {
      const double then = machine_memory(other, parameters, world, here).total();
      if (then < 0.95 * now) {
        out.emplace_back(change.words, then);
      }
    }
  }
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return out;
}

}  // namespace kf
