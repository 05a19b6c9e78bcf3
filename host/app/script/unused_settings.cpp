#include "app/script/unused_settings.h"

#include <algorithm>
#include <string_view>

#include "core/log.h"

namespace kf {
namespace {

bool holds(const std::vector<const char*>& names, std::string_view name) {
  return std::any_of(names.begin(), names.end(), [&](const char* one) { return name == one; });
}

bool has_use(std::string_view section, std::string_view key, SettingsUse use) {
  if (section == "run" && key == "memory_check") {
    return use == SettingsUse::inference;
  }
  if (section == "generate" || holds(training_sections(), section)) {
    return false;
  }
  // The plain twins of fused kernels can be asked for where a model runs.
  return section != "train" || holds(inference_train_keys(), key) || (use == SettingsUse::inference && key == "compile_model");
}

}  // namespace

const std::vector<const char*>& training_sections() {
  static const std::vector<const char*> names{"hooks",     "phases",      "hook",    "phase",         "optimizer",  "scheduler",
                                              "loss",      "metric",      "metrics", "sink",          "checkpoint", "ckpt_strategy",
                                              "profiling", "distributed", "diloco",  "parallel_plan", "averaging",  "run"};
  return names;
}

const std::vector<const char*>& inference_train_keys() {
  static const std::vector<const char*> names{"seq_len", "batch_size", "seed", "data_seed"};
  return names;
}

void warn_unused_settings(const std::vector<std::string>& overrides, SettingsUse use) {
  for (const std::string& override_ : overrides) {
    std::string_view name = std::string_view(override_).substr(0, override_.find('='));
    name.remove_prefix(std::min(name.find_first_not_of('-'), name.size()));
    const std::size_t dot = name.find('.');
    if (dot == std::string_view::npos) {
      continue;  // no setting: refused where it is read
    }
    const std::string_view rest = name.substr(dot + 1);
    if (name.starts_with("train.mixed_precision") && use == SettingsUse::inference) {
      log::warn("{} has no effect here: weights are read, and evaluated, in fp32", name);
    } else if (!has_use(name.substr(0, dot), rest.substr(0, rest.find_first_of(".[")), use)) {
      log::warn("{} has no effect here: {}", name,
                use == SettingsUse::data ? "it does not change what is read" : "it says how a model is trained, or written");
    }
  }
}

}  // namespace kf
