#pragma once
// An earlier export in the place of a new one: what the exporter wrote there goes, what its user put there stays.

#include <map>
#include <string>

#include "core/fs.h"

namespace kf {

/// Where an export of this name is written: links are followed. Throws Code::config where something else than an export is there.
fs::path export_target(const fs::path& asked);

/// What is written into the files of weights about the other files of `folder`, by which `keep_others` knows them again.
std::map<std::string, std::string> record_of(const fs::path& folder);

/// Brings from the export `earlier`, if it is there, into `folder` whatever no exporter wrote: other files and folders, and files that were
/// changed since. Files are linked, so that they are in both. Weights and config.json are always those of `folder`.
void keep_others(const fs::path& earlier, const fs::path& folder);

}  // namespace kf
