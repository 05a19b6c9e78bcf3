#pragma once
// The presets that come with the program, configs/*/*.toml.

#include <string>

namespace kf {

/// The text of a preset: a path, "train/debug" or "debug". Throws Code::config with the list when there is none of that name.
std::string preset_text(const std::string& name);

/// A small commented job for whoever starts without a preset.
std::string starter_job();

}  // namespace kf
