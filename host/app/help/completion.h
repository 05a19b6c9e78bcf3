#pragma once
// What shells need to complete a command line of kf-host. Written from the pages of help and the rows of settings.

#include <string>
#include <vector>

#include "config/schema/part.h"

namespace kf {

/// Shells that are known: bash, zsh, fish.
const std::vector<std::string>& completed_shells();

/// The script for `shell`, one of these. `catalog`: the parts whose names settings take.
std::string completion_for(const std::string& shell, const config::Catalog& catalog);

}  // namespace kf
