#pragma once
// The command line: which subcommand, with what.

#include <string>
#include <vector>

namespace kf {

/// Runs the program with its arguments (without its own name); returns the exit status. Throws what goes wrong.
int run_program(const std::vector<std::string>& args);

}  // namespace kf
