#pragma once
// What classes of transformers take where a config.json leaves a key out, as far as families differ from each other in it.

#include <string>

#include "config/tree/node.h"

namespace kf::config::huggingface {

void add_class_defaults(const std::string& model_type, Table& keys);

}  // namespace kf::config::huggingface
