#pragma once
// The files of a source: where they are asked for, what was found.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/fs.h"
#include "data/file/format.h"

namespace kf {

/// A file that lies on another machine and is fetched when it is read, then forgotten (`data.hf_streaming`).
class RemoteFile {
 public:
  virtual ~RemoteFile() = default;
  /// Fetches it; the local copy lives as long as the pointer. Thread-safe. Throws Code::data.
  virtual std::shared_ptr<const fs::path> fetch() const = 0;
};

/// One file of a source.
struct SourceFile {
  fs::path path;                             // as found: what messages and logs say; for a remote file, its address
  std::string name;                          // relative to the source's root: what identifies it where the folder is moved
  std::int64_t size = 0;                     // bytes on disk, compressed where it is; for progress
  FileKind kind;                             // how it is read
  std::string identity;                      // of a file from the hub: its checksum there; "" for others
  std::shared_ptr<const RemoteFile> remote;  // null: `path` can be opened
};

/// Where the data come from, and the keys that said so (for messages).
struct SourceRequest {
  std::vector<std::string> paths;  // files, folders, globs, brace lists {a,b} and ranges {00..12}; or else
  std::string hf_name;             // a data set of the hub, with
  std::string hf_config;           // its configuration ("" for the only or default one),
  std::string hf_split = "train";
  std::string hf_revision = "main";
  bool hf_streaming = false;
  /// Which files of a folder: glob and braces. "" takes every file whose name says that it holds data. A folder that `datasets` saved
  /// names its files itself: the pattern applies only if it matches something.
  std::string pattern;
  std::string path_key = "data.dataset_path";
  std::string pattern_key = "data.file_pattern";
};

/// The files in order: as listed, and within a folder or glob by bytes of their names. A file that several names or links reach is once in
/// it.
struct SourceFiles {
  std::vector<SourceFile> files;  // never empty
  fs::path root;                  // names are relative to it
  bool tokens = false;            // the files hold ids, not text; never both
  std::int64_t bytes = 0;         // of all
};

}  // namespace kf
