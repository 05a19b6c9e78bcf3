#pragma once
// Which processor this is.

#include <string>

namespace kf {

/// As the system names it: "AMD EPYC 7B13", or the machine's architecture where it gives no name.
std::string processor_name();

}  // namespace kf
