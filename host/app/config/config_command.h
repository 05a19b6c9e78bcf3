#pragma once
// `kf-host config ...`: check, show, explain, diff, schema, keys, new, docs. Results go to `out`, problems are thrown.

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "config/load/load.h"

namespace kf {

/// What running a Lua script gives: the table it returned, and the catalog with the parts that it registered.
struct Recipe {
  config::Node table;
  config::Catalog catalog;
};
using RecipeReader = std::function<Recipe(const fs::path&)>;
/// What `check` asks beyond the settings: whether the files that they name can be read. Throws where they cannot.
using DataCheck = std::function<void(const config::Config&)>;

/// Lines that `check` prints besides, as of the memory that the job takes; `world` ranks.
using JobReport = std::function<std::vector<std::string>(const config::Loaded&, std::int64_t world)>;

/// What needs more than settings; each may be empty.
struct ConfigHelpers {
  RecipeReader recipes = {};
  DataCheck data = {};
  JobReport memory = {};
};

/// `args` without the word "config". Without a reader, .lua files are refused. Returns the exit status; throws Error{Code::config} for a
/// faulty job or a wrong call.
int config_command(const std::vector<std::string>& args, const config::Catalog& catalog, std::ostream& out,
                   const ConfigHelpers& helpers = {});

}  // namespace kf
