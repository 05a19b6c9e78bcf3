#pragma once
// The settings of a model that change its numbers, in one form whatever keys say them: two models with the same are one model.

#include <map>
#include <string>
#include <vector>

#include "config/schema/config.h"
#include "config/tree/node.h"

namespace kf::config {

using Settings = std::map<std::string, Node>;

/// [model] by its keys, with what is left unset filled in: what has no effect is left out, patterns are lists with an entry a layer
/// ("layer_pattern", "rope_pattern", "moe_pattern"), values that stand for another (0 of attn_scale) are that one.
Settings comparable(const ModelConfig& model);
/// The settings that change training alone, not what a trained model computes: first values, dropout, the weight of the balance loss.
Settings of_training(const ModelConfig& model);

/// A setting that two models have different.
struct Difference {
  std::string key;  // "model.attn_gate"
  Node ours;        // null where the setting has no effect
  Node theirs;
};
/// Reals that agree to 1e-12 are equal.
std::vector<Difference> differences(const Settings& ours, const Settings& theirs);

}  // namespace kf::config
