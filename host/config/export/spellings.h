#pragma once
// How families of Hugging Face say settings of a model in their config.json: proposals, of which the functions that read the file
// (config/huggingface) say which are right.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/schema/config.h"
#include "config/tree/node.h"

namespace kf::config {

/// Keys that are set together; a point in a key leads into a table. Nothing for a key that must not be there.
using Spelling = std::vector<std::pair<std::string, std::optional<Node>>>;

/// Every way in which some family says a setting of `model`; the ones that depend on others come later.
std::vector<Spelling> spellings(const ModelConfig& model);

/// `json` with the keys of `spelling`.
Table with(Table json, const Spelling& spelling);

/// The tables of rotary settings, "rope_parameters" as transformers 5 has it, in the forms that families read.
std::vector<Spelling> rope_spellings(const ModelConfig& model);
/// Kinds of attention, rotation and experts by layer.
std::vector<Spelling> layer_spellings(const ModelConfig& model);

}  // namespace kf::config
