#pragma once
// What the interactive prompt asks of Lua.

#include <string>
#include <vector>

#include "bindings/script/script.h"

namespace kf {

/// Runs what was typed and prints its results. "done"; "more" when the chunk is unfinished; else the message of the error.
std::string evaluate_line(Script& script, const std::string& text);

/// What is wrong with a chunk before it runs: "more" when it is unfinished, a message that calls it "attach", or "".
std::string chunk_problem(Script& script, const std::string& text);

/// The words that may stand in place of the last word of `line`. `context`: the names behind `ctx`, where there is one.
std::vector<std::string> complete_line(Script& script, const std::string& line, const std::vector<std::string>& context = {});

}  // namespace kf
