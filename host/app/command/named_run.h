#pragma once
// A run on the command line.

#include <string>

#include "core/fs.h"

namespace kf {

/// The folder of the run that `word` names: itself, or runs/`word`. Throws Code::config for what is no run, naming the nearest of those in
/// its folder.
fs::path named_run(const std::string& word);

}  // namespace kf
