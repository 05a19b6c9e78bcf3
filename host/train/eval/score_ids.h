#pragma once
// The log-likelihood of what ends a text, of many texts.

#include <c10/core/Device.h>

#include <cstdint>
#include <span>
#include <vector>

#include "model/model.h"
#include "train/eval/choice_file.h"

namespace kf {

/// Sums over the continuation's tokens, in nats, in the order of `texts`, each of which has an id before its continuation. Texts of like
/// length run together, `batch_size` at a time; experts with a capacity, where rows compete, run one at a time. In evaluation mode;
/// nothing of the model or of the random numbers is moved.
std::vector<double> loglikelihoods(Model& model, std::span<const ChoiceIds> texts, at::Device device, std::int64_t batch_size);

}  // namespace kf
