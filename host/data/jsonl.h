#pragma once
// JSON lines: one string field of each line.

#include <functional>
#include <string>
#include <string_view>

#include "core/fs.h"

namespace kf {

/// Calls `f` with the text of `field` of each line of `content`, in order; blank lines are passed over. The view lives during the call.
/// Throws Code::data naming path and line when a line is no JSON object, or lacks the field, or holds something else than a string in it.
void for_each_jsonl_text(std::string_view content, const std::string& field, const fs::path& path,
                         const std::function<void(std::string_view)>& f);

}  // namespace kf
