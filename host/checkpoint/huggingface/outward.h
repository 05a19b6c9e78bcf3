#pragma once
// Which tensors a Hugging Face folder of a family has for a model, and of which of ours each is made.

#include <string>
#include <vector>

#include "checkpoint/huggingface/rules.h"
#include "config/tree/node.h"
#include "model/model.h"

namespace kf::huggingface {

/// Weights named shared_expert.N: how many of them a layer has; 0 where there is one or none.
std::int64_t numbered_shared_experts(Model& model);

struct OutwardPart {
  Layout layout = Layout::same;
  ParameterPtr parameter;
  StoredView view;  // which part of it, under the name that the table has
};

struct OutwardTensor {
  std::string name;
  std::vector<OutwardPart> parts;  // in the order of the table
};

/// For all weights of `model`, in its order, by the table of the family that `json` (a config.json) names. A shared weight stands once.
/// Layers of multi-token prediction are left out, as the classes do not read them. Throws Code::checkpoint naming weights that the family
/// has no tensor for.
std::vector<OutwardTensor> outward_tensors(const config::Table& json, Model& model);

}  // namespace kf::huggingface
