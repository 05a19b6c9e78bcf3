#pragma once
// What `kf-host --version` prints. The launcher has it, too: it needs no torch.

#include <string>

namespace kf {

std::string version_text();

}  // namespace kf
