#pragma once
// Which of the weights of a checkpoint are read: the saved ones, their running average, or those that training goes on from.

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "checkpoint/files/pieces.h"
#include "checkpoint/files/stored_tensors.h"
#include "model/model.h"

namespace kf {

enum class WeightKind {
  saved,    // model.safetensors: what training evaluates as `loss` (with schedule_free_adamw its averages x)
  average,  // of [averaging], or of the hook weight_ema: what training evaluates as `ema` (with schedule_free_adamw alone the saved ones)
  raw,      // what training goes on from: with schedule_free_adamw its y, else the saved ones
};

/// "saved", "average" or "raw"; throws Code::config naming `option` for another word.
WeightKind weight_kind_named(std::string_view word, std::string_view option);

class CheckpointReader;

/// Puts the weights of this kind in the place of the saved ones, which the model holds already. Weights that were frozen have no average
/// and stay. Throws Code::checkpoint where the checkpoint holds none.
void load_kind(const CheckpointReader& checkpoint, WeightKind kind, Model& model, const Placements& placements = own_placement);

/// Where the running average of a checkpoint lies: tensors named and shaped as the weights, behind a prefix. None (`stored` null) with
/// schedule_free_adamw, whose saved weights are it. Throws Code::checkpoint where the checkpoint holds none.
struct AverageTensors {
  std::shared_ptr<const StoredTensors> stored;
  std::string prefix;
};
AverageTensors average_tensors(const CheckpointReader& checkpoint);

/// beta1 of schedule_free_adamw, which went on from (1 - beta1) z + beta1 x; nothing of another optimizer.
std::optional<double> schedule_free_beta(const CheckpointReader& checkpoint);

}  // namespace kf
