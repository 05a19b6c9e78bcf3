#pragma once
// From files and arguments to a checked Config: defaults, `extends`, TOML, recipe, command line; every problem at once.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/schema/loaded.h"
#include "config/schema/part.h"
#include "core/fs.h"

namespace kf::config {

/// What was asked for, before checking.
struct Request {
  fs::path job;                        // .toml, or empty for defaults alone
  std::vector<std::string> overrides;  // "--section.key=value", "--flag"; anything else becomes a problem
  std::optional<Node> recipe;          // what a Lua script returned, a table; its `extends` is relative to the folder of origin.file
  std::optional<std::int64_t> world;   // number of ranks, where known: also runs the rules that need it
  bool files_must_exist = true;        // `check` and runs; not `show`
  bool trains = true;                  // false: the model is only read, and what is said of training does not matter
};

/// Never throws for a faulty job: the faults are in `report` (config then holds what could be read).
Loaded load(const Request& request, const Catalog& catalog);

/// Throws Error{Code::config} with the whole report as its message when there is any problem. Logs the warnings.
Loaded load_or_fail(const Request& request, const Catalog& catalog);

}  // namespace kf::config
