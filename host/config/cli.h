#pragma once
// The command line's own layer: --section.key=value, --section.list[0].key=value, --section.flag.

#include <optional>
#include <string>
#include <vector>

#include "config/load.h"

namespace kf::config {

/// One option: where it goes and what it puts there.
struct Override {
  struct Step {
    std::string name;       // a key, or
    std::size_t index = 0;  // a place in a list
    bool is_index = false;
  };
  std::vector<Step> path;
  Node value;
};

/// Reads one argument, the `position`-th; anything that is no option becomes a problem.
std::optional<Override> parse_override(const std::string& argument, int position, Report& report);

/// Puts the value into the tree: tables are entered, lists by index (the index behind the last appends).
void apply_override(Table& tree, const Override& option, Report& report);

}  // namespace kf::config
