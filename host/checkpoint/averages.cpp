#include "checkpoint/averages.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <string>

#include "checkpoint/reader.h"
#include "core/error.h"
#include "model/weight_unit.h"
#include "optim/averaging.h"

namespace kf {
namespace {

constexpr const char* kHookFile = "ema.safetensors";  // of the hook weight_ema

/// The part of a weight that lies here, to be read from a tensor that is shaped as the weight.
TensorPiece whole_piece(const std::string& name, const Parameter& weight, const Placements& placements, const at::Tensor& tensor) {
  return {name, weight.shape, placements(weight).of(weight.shape), tensor};
}

/// Copies the tensor `prefix` + name of each weight that has one; how many there were.
std::size_t overlay(const StoredTensors& stored, const std::string& prefix, Model& model, const Placements& placements) {
  const at::NoGradGuard no_grad;
  std::size_t count = 0;
  for (const ParameterPtr& parameter : model.parameters()) {
    const std::string name = prefix + parameter->name;
    if (!stored.contains(name) || parameter->unfilled) {  // unfilled: excluded from loading
      continue;
    }
    KF_CHECK(stored.shape(name) == parameter->shape, Code::checkpoint, "{}: '{}' has another shape than the weight", stored.path(), name);
    stored.read(whole_piece(name, *parameter, placements, parameter->kept().detach()));
    ++count;
  }
  publish(model.parameters());
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
void overlay_schedule_free(const StoredTensors& stored, double beta, Model& model, const Placements& placements) {
  const at::NoGradGuard no_grad;
  for (const ParameterPtr& parameter : model.parameters()) {
    const std::string z = "z." + parameter->name, x = "x." + parameter->name;
    if (!stored.contains(z) || !stored.contains(x) || parameter->unfilled) {
      continue;
    }
    const auto part = [&](const std::string& name) {
      TensorPiece piece = whole_piece(name, *parameter, placements, {});
      piece.tensor = at::empty(piece.range.size, at::TensorOptions().dtype(stored.type(name)));
      stored.read(piece);
      return piece.tensor;
    };
    parameter->kept().detach().copy_(part(z).lerp(part(x), beta));
  }
  publish(model.parameters());
}

void load_average(const CheckpointReader& checkpoint, Model& model, const Placements& placements) {
  const AverageTensors average = average_tensors(checkpoint);
  if (average.stored) {
    KF_CHECK(overlay(*average.stored, average.prefix, model, placements) > 0, Code::checkpoint, "{} holds none of the model's weights",
             average.stored->path());
  }
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

AverageTensors average_tensors(const CheckpointReader& checkpoint) {
  const StoredTensors& moments = checkpoint.moments();
  for (const std::string& name : moments.names()) {
    if (name.starts_with(kAveragePrefix)) {
      return {{std::shared_ptr<void>(), &moments}, kAveragePrefix};  // the reader's own
    }
  }
  const fs::path hook = checkpoint.path() / kHookFile;
  if (fs::exists(hook)) {
    return {std::make_shared<const StoredTensors>(hook), ""};
  }
  KF_CHECK(is_schedule_free(checkpoint.state()), Code::checkpoint,
           "{} holds no running average of the weights: its run had averaging.type = \"none\" and no hook weight_ema", checkpoint.path());
  return {};
}

std::optional<double> schedule_free_beta(const CheckpointReader& checkpoint) {
  return is_schedule_free(checkpoint.state()) ? std::optional(betas_first(checkpoint.state(), checkpoint.path())) : std::nullopt;
}

void load_kind(const CheckpointReader& checkpoint, WeightKind kind, Model& model, const Placements& placements) {
  if (kind == WeightKind::average) {
    load_average(checkpoint, model, placements);
  } else if (const std::optional<double> beta = kind == WeightKind::raw ? schedule_free_beta(checkpoint) : std::nullopt) {
    overlay_schedule_free(checkpoint.moments(), *beta, model, placements);
  }
}

}  // namespace kf
