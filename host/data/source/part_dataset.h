#pragma once
// A registered data set as a source.

#include <string>

#include "data/source/source.h"

namespace kf {

/// The data set `name`, built for windows of config.train.seq_len + 1. Throws Code::config for an unknown name; `key` is in messages.
OpenSource open_part(const config::Config& config, const Registries* registries, const std::string& name, const std::string& key);

}  // namespace kf
