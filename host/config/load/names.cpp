#include "config/load/names.h"

#include <algorithm>
#include <array>

#include "config/plan/derived.h"
#include "config/schema/schema.h"
#include "core/text.h"

namespace kf::config {
namespace {

struct Foreign {
  const char* name;
  const char* key;
};

/// What other programs call our keys.
constexpr std::array<Foreign, 44> kForeign{{
    {"learning_rate", "optimizer.lr"},
    {"adam_beta1", "optimizer.betas"},
    {"adam_beta2", "optimizer.betas"},
    {"beta1", "optimizer.betas"},
    {"beta2", "optimizer.betas"},
    {"adam_epsilon", "optimizer.eps"},
    {"epsilon", "optimizer.eps"},
    {"wd", "optimizer.weight_decay"},
    {"warmup", "scheduler.warmup_steps"},
    {"warmup_ratio", "scheduler.warmup_steps"},
    {"lr_scheduler_type", "scheduler.name"},
    {"lr_scheduler", "scheduler.name"},
    {"min_lr", "scheduler.min_lr_ratio"},
    {"epochs", "train.max_steps"},
    {"num_epochs", "train.max_steps"},
    {"num_train_epochs", "train.max_steps"},
    {"num_steps", "train.max_steps"},
    {"total_steps", "train.max_steps"},
    {"max_iters", "train.max_steps"},
    {"iterations", "train.max_steps"},
    {"gradient_accumulation_steps", "train.grad_accum_steps"},
    {"grad_accum", "train.grad_accum_steps"},
    {"per_device_train_batch_size", "train.batch_size"},
    {"micro_batch_size", "train.batch_size"},
    {"max_grad_norm", "train.grad_clip_norm"},
    {"grad_clip", "train.grad_clip_norm"},
    {"clip_grad", "train.grad_clip_norm"},
    {"dtype", "train.mixed_precision"},
    {"precision", "train.mixed_precision"},
    {"sequence_length", "train.seq_len"},
    {"context_length", "train.seq_len"},
    {"block_size", "train.seq_len"},
    {"gradient_checkpointing", "train.activation_checkpointing"},
    {"hidden_size", "model.dim"},
    {"d_model", "model.dim"},
    {"n_embd", "model.dim"},
    {"num_layers", "model.n_layers"},
    {"num_hidden_layers", "model.n_layers"},
    {"num_heads", "model.n_heads"},
    {"num_attention_heads", "model.n_heads"},
    {"num_key_value_heads", "model.n_kv_heads"},
    {"intermediate_size", "model.ffn_hidden_dim"},
    {"save_steps", "checkpoint.interval"},
    {"logging_steps", "metrics.log_interval"},
}};

std::string as_key(std::string name) {
  name = lower(name);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

/// Keys of the whole job that are called `name`, as ours or as somebody else's.
std::vector<std::string> homes_of(const std::string& name) {
  std::vector<std::string> homes;
  for (const Row& row : rows()) {
    if (row.name == name && !row.section.empty()) {
      homes.push_back(row.key());
    }
  }
  for (const Foreign& foreign : kForeign) {
    if (homes.empty() && foreign.name == name) {
      homes.emplace_back(foreign.key);
    }
  }
  return homes;
}

std::string lead(const std::string& table, const std::string& name) {
  const std::string shown = brief(Node(name));
  return table.empty() ? format("unknown key {}", shown) : format("[{}] unknown key {}", table, shown);
}

std::string near_in(const std::string& name, const std::vector<std::string>& names) {
  const std::string word = as_key(name);
  std::string near = name.size() <= 64 ? nearest(word, names) : "";
  for (const std::string& candidate : names) {  // "training" for train, "dist" for distributed
    const bool prefix = (word.starts_with(candidate) && candidate.size() >= 4) || (candidate.starts_with(word) && word.size() >= 4);
    if (near.empty() && prefix) {
      near = candidate;
    }
  }
  return near;
}

/// The nearest key of all sections, as "optimizer.weight_decay".
std::string near_anywhere(const std::string& name) {
  std::vector<std::string> names;
  for (const Row& row : rows()) {
    names.push_back(row.name);
  }
  const std::string near = near_in(name, names);
  const std::vector<std::string> homes = near.empty() ? std::vector<std::string>() : homes_of(near);
  return homes.empty() ? "" : homes.front();
}

}  // namespace

std::string unknown_key(const std::string& table, const std::string& name, const std::vector<std::string>& names) {
  const std::string start = lead(table, name);
  const std::string plain = as_key(name);
  const std::vector<std::string> homes = homes_of(plain);
  const auto known = [&names](const std::string& key) { return std::find(names.begin(), names.end(), key) != names.end(); };
  if (known(plain)) {
    return format("{}; did you mean '{}'?", start, plain);
  }
  if (homes.size() == 1 && homes[0].starts_with(table + ".")) {
    return format("{}; did you mean '{}'?", start, homes[0].substr(table.size() + 1));  // another program's name for a key of this table
  }
  const bool ours = !homes.empty() && homes[0].ends_with("." + plain);
  if (const std::string near = near_in(name, names); !near.empty() && (homes.empty() || ours)) {
    return format("{}; did you mean '{}'?{}", start, near,
                  ours ? format(" ('{}' itself exists elsewhere \u2192 {})", plain, join(homes, " or ")) : "");
  }
  if (!homes.empty()) {
    return format("{}; it belongs elsewhere \u2192 {}", start, join(homes, " or "));
  }
  if (const std::string near = near_anywhere(name); !near.empty()) {
    return format("{}; did you mean \u2192 {}?", start, near);
  }
  return format("{}; known here: {}", start, names.empty() ? "nothing" : join(names, ", "));
}

std::string unknown_field(const std::string& table, const std::string& name, const std::vector<std::string>& names) {
  const std::string near = near_in(name, names);
  return near.empty() ? format("{}; known here: {}", lead(table, name), names.empty() ? "nothing" : join(names, ", "))
                      : format("{}; did you mean '{}'?", lead(table, name), near);
}

std::vector<std::string> part_names(const Catalog& catalog, const std::string& kind) {
  std::vector<std::string> names;
  if (const auto found = catalog.find(kind); found != catalog.end()) {
    for (const PartInfo& part : found->second) {
      names.push_back(part.name);
    }
  }
  if (kind == "mlp" && !names.empty()) {
    for (const char* activation : {"relu", "gelu", "silu"}) {
      if (std::find(names.begin(), names.end(), mlp_name(activation)) != names.end()) {
        names.insert(names.begin(), activation);
      }
    }
  }
  return names;
}

}  // namespace kf::config
