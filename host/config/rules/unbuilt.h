#pragma once
// What is not there yet, once: README's list, docs/config.md, `config keys`, warnings and errors all come from this table. An entry goes
// when its feature is built.

#include <optional>
#include <string>
#include <vector>

#include "config/schema/loaded.h"

namespace kf::config {

/// One sentence for each key that the job sets and that has no effect in this build, unless its value says what happens anyway
/// (profiling.enable = false).
std::vector<std::string> keys_without_effect(const Loaded& loaded);

/// One sentence for each setting that a run would refuse because what it asks for is not built (distributed.tp = 2, fp8).
std::vector<std::string> keys_refused(const Config& config);

/// "No effect yet: there is no profiler." for the docs of a key; nothing for keys that work.
std::optional<std::string> unbuilt_note(const std::string& key);

/// README's list: a line of markdown a feature, with its settings.
std::string unbuilt_markdown();

}  // namespace kf::config
