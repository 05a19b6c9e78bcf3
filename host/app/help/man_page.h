#pragma once

#include <string>

namespace kf {

/// kf-host(1) in the macros of man(7): the help of every command, and every setting. Packages install it.
std::string man_page();

}  // namespace kf
