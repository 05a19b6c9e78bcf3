#pragma once
// What stands in a config.json and changes no number: other programs' notes, ways to run a model, how texts are sampled.

#include <string_view>

#include "config/tree/node.h"

namespace kf::config::huggingface {

/// Whether an entry that no class reads may be passed over: null, a known note, a version or token id by its name, or a switch that is off.
/// Whatever else is unknown may change a number.
bool is_note(std::string_view key, const Node& value);

}  // namespace kf::config::huggingface
