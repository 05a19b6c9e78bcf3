#pragma once
// What of a layer's inside is computed again in backward, by train.activation_checkpointing.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/schema/config.h"

namespace kf::config {

/// Whether a layer's inside is computed again in backward, at least in part.
bool recomputes(const TrainConfig& train, std::int64_t layer);
/// Whether `branch` of it, "attention" or "mlp", runs again, and what it sends is sent again: products that were kept are no message.
bool runs_again(const TrainConfig& train, std::int64_t layer, std::string_view branch);
/// Whether backward finds this result of a layer in memory: "q", "k", "v", "kv", "context", "out", "gate", "up", "down", or "" for another
/// product.
bool keeps_result(const TrainConfig& train, std::int64_t layer, std::string_view result);

/// The results that a named policy keeps; the program's own list is in model/recompute/recompute.cpp.
std::vector<std::string> kept_by(const std::string& policy);

}  // namespace kf::config
