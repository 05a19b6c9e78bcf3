#pragma once
// What a script registers and describes, without training: for config check, registry and --help.

#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "config/schema/part.h"
#include "config/tree/node.h"
#include "core/fs.h"

namespace kf {

struct ScriptParts {
  std::optional<config::Node> table;  // the job that it returns, of its first kf.run, or of its sweep; nothing when there is none
  config::Catalog catalog;            // native parts and its own
};

/// Runs the script, with `arguments` as kf.args, up to its first kf.run. Throws what the script throws.
ScriptParts read_script(const fs::path& path, const std::vector<std::string>& arguments = {});

/// The parts of every kind that `wanted` takes, with their own fields; kinds without any are left out.
void print_parts(std::ostream& out, const config::Catalog& catalog,
                 const std::function<bool(const std::string& kind, const config::PartInfo&)>& wanted);

}  // namespace kf
