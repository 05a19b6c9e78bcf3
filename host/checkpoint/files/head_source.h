#pragma once
// Where the output head of a model comes from when it takes its weights from elsewhere: checkpoint.init_head.

#include "checkpoint/files/weights.h"

namespace kf {

/// checkpoint.init_head.
HeadSource head_source(const std::string& name);

/// Whether `with_head_from` takes the weight of this name from the model itself.
bool head_is_own(HeadSource source, const std::string& name);

/// `file` as `model` is to take it. Throws Code::config where a tied model is to have a fresh head.
NamedTensors with_head_from(HeadSource source, const NamedTensors& file, Model& model);

}  // namespace kf
