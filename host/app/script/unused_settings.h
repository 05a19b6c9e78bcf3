#pragma once
// Settings that a command takes and has no use for: said, never passed over.

#include <string>
#include <vector>

namespace kf {

enum class SettingsUse { inference, data };

/// Sections of a job that say how a model is trained: no part of what inference reads of a checkpoint's job.
const std::vector<const char*>& training_sections();
/// What inference needs of [train].
const std::vector<const char*>& inference_train_keys();

/// Warns about each of `overrides` ("--section.key=value") without an effect where settings serve `use` only.
void warn_unused_settings(const std::vector<std::string>& overrides, SettingsUse use);

}  // namespace kf
