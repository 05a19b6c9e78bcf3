#pragma once
// The code that a run is made of: what a checkpoint keeps of it, and what has changed since.

#include <string>
#include <vector>

#include "bindings/script/script.h"
#include "config/schema/config.h"
#include "config/tree/node.h"

namespace kf {

/// Whether the job takes a part that a script registered for its model, its data or its loss: then other code may make another run.
bool code_makes_identity(const config::Config& config, const config::Catalog& catalog);

/// Digests of every file by its name, for state.json.
config::Node code_digests(const std::vector<CodeFile>& code);

/// A file of code that is not what it was.
struct CodeChange {
  std::string path;
  /// "its functions have changed", "it has changed outside of its functions", "it is new", "it is gone".
  std::string what;
  /// Only statements of the script itself outside of functions: settings, which are compared key by key, and what it prints.
  bool mild = false;
};

/// What differs between the digests of a checkpoint (null where it kept none: nothing is known then) and the code of now.
std::vector<CodeChange> code_changes(const config::Node& before, const std::vector<CodeFile>& now);

}  // namespace kf
