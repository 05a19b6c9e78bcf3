#pragma once
// Which files of a data set's repository are a configuration's split: as `datasets` finds them.

#include <string>
#include <vector>

namespace kf::hub {

/// The file list of a repository and its card, and what is asked of it.
struct SplitRequest {
  std::string name;                // for messages
  std::vector<std::string> paths;  // all files
  std::string card;                // README.md; "" for none
  std::string config;              // "" for the only or default one
  std::string split = "train";
};

/// Whether `path` matches a pattern in which `*` and `?` stay inside one part, `**` crosses parts, and [...] is a set.
bool path_matches(const std::string& pattern, const std::string& path);

/// The split's files, sorted as the repository's patterns list them. First the card's `configs`, then data/SPLIT-00000-of-00002.*, then
/// folders and file names with the split's name in them, then, for "train", all files. Throws Code::data naming the configurations or
/// splits there are.
std::vector<std::string> files_of_split(const SplitRequest& request);

/// Throws Code::data when names like x-00000-of-00003.parquet are not complete: a cache may hold a part of a split.
void check_shards(const std::vector<std::string>& paths, const std::string& name);

}  // namespace kf::hub
