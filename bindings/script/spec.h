#pragma once
// Files of tests written with kf.test: `kf-host test FILE_spec.lua`.

#include <cstdint>
#include <string>

#include "bindings/script/script.h"
#include "core/fs.h"

namespace kf {

struct SpecReport {
  std::int64_t passed = 0;
  std::int64_t failed = 0;
  std::int64_t skipped = 0;
};

/// Runs the file; its tests print as they go. Only those whose name contains `filter`, unless it is empty. Throws Error{Code::script} for
/// what goes wrong outside of tests.
SpecReport run_spec(Script& script, const fs::path& path, const std::string& filter);

/// Runs a file, or the text of a chunk, as an interpreter does: what it returns does not matter.
void execute_file(Script& script, const fs::path& path);
void execute_text(Script& script, const std::string& text);

}  // namespace kf
