#include "checkpoint/averages.h"

#include <ATen/ATen.h>

#include <string>

#include "checkpoint/files/safetensors.h"
#include "checkpoint/manager.h"
#include "checkpoint/state_file.h"
#include "core/error.h"
#include "optim/averaging.h"

namespace kf {
namespace {

constexpr const char* kHookFile = "ema.safetensors";  // of the hook weight_ema

/// Copies the tensor `prefix` + name of each weight that has one; how many there were.
std::size_t overlay(const SafetensorsFile& file, const fs::path& path, const std::string& prefix, Model& model) {
  const at::NoGradGuard no_grad;
  std::size_t count = 0;
  for (const ParameterPtr& parameter : model.parameters()) {
    const std::string name = prefix + parameter->name;
    if (!file.contains(name)) {
      continue;
    }
    const at::Tensor value = file.tensor(name);
    KF_CHECK(value.sizes() == at::IntArrayRef(parameter->shape), Code::checkpoint, "{}: '{}' has another shape than the weight", path,
             name);
    parameter->kept().detach().copy_(value);
    parameter->publish();
    ++count;
  }
  return count;
}

/// optimizer.betas[0] of the checkpoint's settings.
double betas_first(const CheckpointState& state, const fs::path& checkpoint) {
  const config::Node* const optimizer = state.job.table() != nullptr ? state.job.table()->find("optimizer.betas") : nullptr;
  const config::Array* const betas = optimizer != nullptr ? optimizer->array() : nullptr;
  const auto* const first = betas != nullptr && !betas->empty() ? std::get_if<double>(&betas->front().value) : nullptr;
  KF_CHECK(first != nullptr, Code::checkpoint, "{} does not say optimizer.betas, which the raw weights of schedule_free_adamw need",
           checkpoint);
  return *first;
}

bool is_schedule_free(const CheckpointState& state) {
  const config::Node* const name = state.job.table() != nullptr ? state.job.table()->find("optimizer.name") : nullptr;
  const auto* const text = name != nullptr ? std::get_if<std::string>(&name->value) : nullptr;
  return text != nullptr && *text == "schedule_free_adamw";
}

/// y = (1 - beta1) z + beta1 x, as the optimizer makes it.
void overlay_schedule_free(const SafetensorsFile& file, double beta, Model& model) {
  const at::NoGradGuard no_grad;
  for (const ParameterPtr& parameter : model.parameters()) {
    if (file.contains("z." + parameter->name) && file.contains("x." + parameter->name)) {
      parameter->kept().detach().copy_(file.tensor("z." + parameter->name).lerp(file.tensor("x." + parameter->name), beta));
      parameter->publish();
    }
  }
}

void load_average(const fs::path& checkpoint, bool schedule_free, Model& model) {
  const fs::path state = checkpoint / kOptimizerFile;
  if (overlay(SafetensorsFile(state), state, kAveragePrefix, model) > 0) {
    return;
  }
  const fs::path hook = checkpoint / kHookFile;
  if (fs::exists(hook)) {
    KF_CHECK(overlay(SafetensorsFile(hook), hook, "", model) > 0, Code::checkpoint, "{} holds none of the model's weights", hook);
    return;
  }
  KF_CHECK(schedule_free, Code::checkpoint,
           "{} holds no running average of the weights: its run had averaging.type = \"none\" and no hook weight_ema", checkpoint);
}

}  // namespace

WeightKind weight_kind_named(std::string_view word, std::string_view option) {
  if (word == "saved") {
    return WeightKind::saved;
  }
  if (word == "average") {
    return WeightKind::average;
  }
  KF_CHECK(word == "raw", Code::config, "{} must be saved, average or raw, got '{}'", option, word);
  return WeightKind::raw;
}

void load_kind(const fs::path& checkpoint, WeightKind kind, Model& model) {
  if (kind == WeightKind::saved) {
    return;
  }
  const CheckpointState state = CheckpointManager::peek(checkpoint);
  const bool schedule_free = is_schedule_free(state);
  if (kind == WeightKind::average) {
    load_average(checkpoint, schedule_free, model);
  } else if (schedule_free) {
    overlay_schedule_free(SafetensorsFile(checkpoint / kOptimizerFile), betas_first(state, checkpoint), model);
  }
}

}  // namespace kf
