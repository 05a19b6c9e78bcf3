#pragma once
// The command line's own layer: --section.key=value, --section.list[0].key=value, --section.flag.

#include <optional>
#include <string>
#include <vector>

#include "config/load/load.h"

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

/// Values behind a blank joined to their options: {"--optimizer.lr", "1e-3"} becomes {"--optimizer.lr=1e-3"}. A boolean takes only a word
/// for a boolean, an option of a part (whose type is not known here) no job file; other words stay.
std::vector<std::string> join_values(const std::vector<std::string>& words);

/// Reads one argument, the `position`-th; anything that is no option becomes a problem.
std::optional<Override> parse_override(const std::string& argument, int position, Report& report);

/// Puts the value into the tree: tables are entered, lists by index (the index behind the last appends).
void apply_override(Table& tree, const Override& option, Report& report);

}  // namespace kf::config
