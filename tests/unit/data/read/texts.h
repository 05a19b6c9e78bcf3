#pragma once
// What the readers give, collected: for tests.

#include <string>
#include <vector>

#include "data/read/reader.h"

namespace kf::test {

/// All texts of a file or folder.
std::vector<std::string> texts_of(const fs::path& path, const ReadOptions& options = {});
/// The same, with what was left out.
std::vector<std::string> texts_of(const fs::path& path, const ReadOptions& options, Skipped& skipped);
/// The texts of one file, read in parts of `bytes`.
std::vector<std::string> texts_in_parts(const fs::path& path, std::int64_t bytes, const ReadOptions& options = {});
/// The message with which reading fails; "" when it does not.
std::string error_of(const fs::path& path, const ReadOptions& options = {});
/// sha256 of the texts joined by NUL bytes.
std::string digest_of(const std::vector<std::string>& texts);
SourceFiles source_of(const fs::path& path);

}  // namespace kf::test
