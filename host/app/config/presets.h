#pragma once
// The one list of presets: known models (model.preset) and jobs that come with the program (configs/*/*.toml).

#include <string>

namespace kf {

/// The text of a job to start from: a path, a job of configs/ ("train/debug" or "debug"), or a known model ("llama3-8b"), which becomes a
/// job around it. Throws Code::config with near names when there is none of that name.
std::string preset_text(const std::string& name);

/// A small commented job for whoever starts without a preset.
std::string starter_job();

/// The list, in lines of at most 80 columns; `pattern` is a part of a name, or has * in it, "" for all. Throws Code::config when nothing
/// matches.
std::string presets_text(const std::string& pattern);

/// docs/presets.md.
std::string presets_markdown();

}  // namespace kf
