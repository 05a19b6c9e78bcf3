#pragma once
// What a page may say to a run while it trains (kf-host serve --steer): a few wishes, no Lua of anybody's.

#include <optional>
#include <string>

#include "core/fs.h"

namespace kf::report {

/// The chunk of Lua for `wish`: "save", "eval", "stop", or "lr" with `value`, a factor of the learning rate from 1e-6 to 1000. Nothing for
/// what is none of these.
std::optional<std::string> steering_chunk(const std::string& wish, const std::string& value);

/// Says it to the run that trains in `folder` and waits for its answer, which comes behind the step that is on. Throws Code::communication
/// where none trains there, and what the run says went wrong.
void steer(const fs::path& folder, const std::string& chunk);

}  // namespace kf::report
