#pragma once
// What the files of a source hold, by hash. A file whose stat is as it was when it was last hashed is not read again.

#include <cstdint>
#include <string>
#include <vector>

#include "core/fs.h"
#include "data/read/reader.h"

namespace kf::cache {

/// What changes when a file is written to, whatever its size does. The time of the last status change catches an edit after which the
/// modification time was set back.
struct Stamp {
  std::int64_t size = 0;
  std::int64_t modified = 0;  // ns
  std::int64_t changed = 0;   // ns, of the status
  std::uint64_t inode = 0;
  std::uint64_t device = 0;
  friend bool operator==(const Stamp&, const Stamp&) = default;
};

/// Throws Code::data naming the file when it cannot be asked.
Stamp stamp_of(const fs::path& path);

struct HashedFile {
  std::string hash;  // of the content; of a file from the hub, its checksum there
  Stamp stamp;       // of the time before it was read; not of remote files
};

/// What was known of a source's files the last time, kept as <cache_dir>/sources/<id>.txt.
struct SourceMemo {
  std::string last_key;  // of the cache that was used
  struct Entry {
    std::string path;
    HashedFile file;
  };
  std::vector<Entry> entries;  // sorted by path
};

/// Names the memo of a source: the absolute places of its files' root, and what picked them.
std::string memo_id(const SourceFiles& files, const std::string& request);

/// Empty when there is none; one that cannot be understood counts as none.
SourceMemo read_memo(const fs::path& file);
/// Leaves out files that changed so shortly before they were hashed that a later change could have the same time.
void write_memo(const fs::path& file, const std::string& key, const SourceFiles& files, const std::vector<HashedFile>& hashed);

/// Whether a memo says all that write_memo would.
bool is_current(const SourceMemo& memo, const std::string& key, const SourceFiles& files, const std::vector<HashedFile>& hashed);

/// The hash of every file, in their order: out of the memo where the stamp fits, else read by `threads` threads (0: the calling one).
/// Throws Code::data when a file cannot be read or changes meanwhile.
std::vector<HashedFile> hash_files(const SourceFiles& files, const SourceMemo& memo, std::int64_t threads);

/// Throws Code::data naming the file when one is not what it was.
void check_unchanged(const SourceFile& file, const HashedFile& hashed);

}  // namespace kf::cache
