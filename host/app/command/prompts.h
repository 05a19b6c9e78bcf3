#pragma once
// Prompts for the generate command: texts or ids, from the command line or a file of JSON lines.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/fs.h"

namespace kf {

struct GivenPrompt {
  std::string text;
  std::vector<std::int64_t> ids;  // instead of a text, where not empty
  std::string chat = {};          // instead of both: a JSON object with messages
};

/// One prompt a line: a JSON string, {"prompt": "text"}, {"ids": [1, 2]} or a chat, {"messages": [...]}; other keys are passed over, and so
/// are blank lines. `name` is the file, for messages. Throws Code::data with file and line.
std::vector<GivenPrompt> parse_prompts(std::string_view content, const std::string& name);

/// The same of a file, or of standard input for "-".
std::vector<GivenPrompt> read_prompts(const std::string& path);

}  // namespace kf
