#pragma once
// Shell patterns, for one part of a path. Folders of this machine and lists of files of the hub are searched alike.

#include <string_view>

namespace kf {

/// `*`, `?`, `[a-z]`, `[!x]` against one part of a path. A bracket that nothing closes is an ordinary character. Going back to the last
/// star only is enough, and keeps the time below pattern times text: patterns come from strangers, too.
bool matches_part(std::string_view pattern, std::string_view text);

}  // namespace kf
