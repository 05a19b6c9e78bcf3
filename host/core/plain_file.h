#pragma once
// Names that are trusted to be files: what else may stand there is told apart before it is opened.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/fs.h"

namespace kf {

/// What keeps `path` from being read as an ordinary file: "it is a pipe, not a regular file", "it is a folder", "it is a link to itself",
/// the system's reason; "" where nothing does. Opens nothing, so it never waits.
std::string unlike_a_file(const fs::path& path);

/// The whole of an ordinary file of at most `most` bytes: a device in its place, which never ends, and a pipe, which waits for its writer,
/// are refused. Throws Code::other.
std::string read_regular_file(const fs::path& path, std::uint64_t most);

/// Whether something has this name; of a link, whether it leads anywhere. Links in a circle lead nowhere.
bool path_exists(const fs::path& path);

/// Whether `number` is a process of this machine that is not there any more.
bool is_gone(std::string_view number);

/// Removes what killed processes left of `write_file_atomic` to these names in `folder`.
void remove_temporaries(const fs::path& folder, const std::vector<std::string>& names);

/// `taken` with the first number behind it, from .1 on, that nothing has.
fs::path free_name(const fs::path& taken);

}  // namespace kf
