#include "train/loop/memory_estimate.h"

#include <algorithm>
#include <functional>
#include <map>
#include <string_view>

#include "config/plan/activation_bytes.h"
#include "config/plan/batch_plan.h"
#include "optim/state_bytes.h"

namespace kf {
namespace {

/// What stays from the first step to the last.
struct Lasting {
  double weights = 0;    // what checkpoints hold
  double copies = 0;     // the 16-bit copies that forward reads
  double trainable = 0;  // numbers that train
  double low = 0;        // of them those whose gradients arrive in 16 bits
  double largest = 0;    // numbers of the largest weight
};

Lasting lasting(const config::Config& config, const ParameterList& parameters) {
  const bool narrow = config.train.mixed_precision == "bf16" || config.train.mixed_precision == "fp16";
  const bool kept_low = narrow && config.train.param_dtype == "bf16" && config.train.mixed_precision == "bf16";
  Lasting out;
  for (const ParameterPtr& p : parameters) {
    const auto numbers = static_cast<double>(p->numel());
    const bool low = narrow && p->shape.size() >= 2 && !p->keep_fp32;
    const bool alone = kept_low || p->is_frozen();  // 16 bits, with no fp32 beside them
    out.weights += numbers * (low && alone ? 2 : 4);
    out.copies += low && !alone ? numbers * 2 : 0;
    out.largest = std::max(out.largest, numbers);
    if (p->trainable && !p->buffer) {
      out.trainable += numbers;
      out.low += low ? numbers : 0;
    }
  }
  return out;
}

/// The linear layers that have a LoRA: its matrices stand beside their weights, "layers.0.attention.q_proj.lora.a" (rank, in) and ".b"
/// (out, rank).
std::vector<config::AdaptedLayer> adapted_layers(const ParameterList& parameters) {
  constexpr std::string_view first = ".lora.a", second = ".lora.b";
  std::map<std::string, config::AdaptedLayer> layers;
  for (const ParameterPtr& p : parameters) {
    if (!p->added || !(p->name.ends_with(first) || p->name.ends_with(second))) {
      continue;
    }
    const std::string name = p->name.substr(0, p->name.size() - first.size());
    config::AdaptedLayer& layer = layers[name];
    layer.name = name;
    if (p->name.ends_with(first)) {
      layer.rank = static_cast<double>(p->shape[0]);
      layer.in = static_cast<double>(p->shape[1]);
    } else {
      layer.out = static_cast<double>(p->shape[0]);
    }
  }
  std::vector<config::AdaptedLayer> out;
  for (auto& [name, layer] : layers) {
    out.push_back(std::move(layer));
  }
  return out;
}

using Amounts = std::vector<std::pair<std::string, double>>;

double sum(const Amounts& parts) {
  double out = 0;
  for (const auto& [name, bytes] : parts) {
    out += bytes;
  }
  return out;
}

/// The fuller of two moments.
void take_fuller(MemoryEstimate& most, std::string moment, Amounts parts) {
  if (sum(parts) > most.total()) {
    most.moment = std::move(moment);
    most.parts = std::move(parts);
  }
}

MemoryEstimate finished(MemoryEstimate estimate) {
  std::erase_if(estimate.parts, [](const auto& part) { return part.second < 1; });
  return estimate;
}

/// Largest micro-batch of the run: phases may change both of its sides.
struct Micro {
  double rows = 0;
  double length = 0;
};

Micro largest_micro(const config::Config& config) {
  Micro out{static_cast<double>(config.train.batch_size), static_cast<double>(config.train.seq_len)};
  for (const config::PhaseEntry& phase : config.phases) {
    const Micro own{static_cast<double>(phase.batch_size.value_or(config.train.batch_size)),
                    static_cast<double>(phase.seq_len.value_or(config.train.seq_len))};
    if (own.rows * own.length > out.rows * out.length) {
      out = own;
    }
  }
  return out;
}

}  // namespace

double MemoryEstimate::total() const { return sum(parts); }

double MemoryEstimate::of(const std::string& part) const {
  const auto found = std::find_if(parts.begin(), parts.end(), [&](const auto& one) { return one.first == part; });
  return found == parts.end() ? 0 : found->second;
}

MemoryEstimate training_memory(const config::Config& config, const ParameterList& parameters) {
  const Lasting mine = lasting(config, parameters);
  const OptimizerBytes optimizer = optimizer_bytes(config, parameters);
  const Micro micro = largest_micro(config);
  const std::vector<config::AdaptedLayer> adapters = adapted_layers(parameters);
  const config::ActivationBytes activations = config::activation_bytes(config, micro.rows, micro.length, true, adapters);
  const Amounts base{
      {"weights", mine.weights}, {"16-bit weights", mine.copies}, {"optimizer (" + config.optimizer.name + ")", optimizer.state}};
  const auto with = [&](Amounts more) {
    more.insert(more.begin(), base.begin(), base.end());
    return more;
  };
  const bool several = config::BatchPlan(config.train, 1).micros(0) > 1 || !config.train.batch_schedule.empty();
  const bool low_sums = config.train.grad_dtype == "bf16";
  const double gradients = (low_sums ? 2 : 4) * mine.trainable;
  const double arriving = several ? 2 * mine.low : 0;  // a micro-batch's own, before they join the sums of those before it
  MemoryEstimate out;
  out.complete = optimizer.known && (config.adapter.name.empty() || config.adapter.name == "lora");
  take_fuller(out, "backward",
              with({{"gradients", several ? gradients : 0}, {"activations", activations.kept}, {"logits", activations.logits}}));
  take_fuller(out, "backward", with({{"gradients", gradients + arriving}, {"activations", activations.passing}}));
  take_fuller(out, "the update", with({{"gradients", gradients}, {"the update itself", optimizer.passing}}));
  if (config.eval.enabled) {
    const double rows = config.eval.batch_size > 0 ? static_cast<double>(config.eval.batch_size) : micro.rows;
    const config::ActivationBytes evaluation =
        config::activation_bytes(config, rows, static_cast<double>(config.train.seq_len), false, adapters);
    const double swapped = config.averaging.type != "none" ? 4 * mine.trainable : 0;
    take_fuller(out, "an evaluation",
                with({{"averaged weights", swapped}, {"activations", evaluation.passing}, {"logits", evaluation.logits}}));
  }
  return finished(std::move(out));
}

MemoryEstimate inference_memory(const config::Config& config, const ParameterList& parameters, double rows, double positions) {
  config::Config plain = config;
  plain.train.mixed_precision = "fp32";
  const Lasting mine = lasting(plain, parameters);
  const double length = positions > 0 ? positions : static_cast<double>(config.train.seq_len);
  const config::ActivationBytes passing = config::activation_bytes(plain, rows, length, false, adapted_layers(parameters));
  MemoryEstimate out;
  take_fuller(out, positions > 0 ? "generation" : "an evaluation",
              {{"weights", mine.weights},
               {"keys and values", positions > 0 ? config::cache_bytes(config.model, rows, positions, 4) : 0},
               {"activations", passing.passing},
               {"logits", passing.logits}});
  return finished(std::move(out));
}

Savers memory_savers(const config::Config& config, const ParameterList& parameters) {
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
      {"train.grad_dtype = \"bf16\"",
       [&](config::Config& c) { return c.train.mixed_precision == "bf16" && set(c.train.grad_dtype, "bf16"); }},
      {"optimizer.name = \"adam_mini\"",
       [&](config::Config& c) { return c.optimizer.name == "adamw" && set(c.optimizer.name, "adam_mini"); }},
  };
  const double now = training_memory(config, parameters).total();
  Savers out;
  for (const Change& change : changes) {
    config::Config other = config;
    if (change.make(other)) {
      const double then = training_memory(other, parameters).total();
      if (then < 0.95 * now) {
        out.emplace_back(change.words, then);
      }
    }
  }
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return out;
}

}  // namespace kf
