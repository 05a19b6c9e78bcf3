#pragma once
// What lies in a folder of caches, and its removal: old caches stay until somebody says that they may go.

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "core/fs.h"

namespace kf::cache {

/// Held as long as a cache is read: prune leaves it alone. Marks the time of use, which is cache.json's own (where it may be changed).
class InUse {
 public:
  /// Waits for who is removing the cache; throws Code::data where it is gone.
  explicit InUse(const fs::path& folder);
  ~InUse();
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;

 private:
  int fd_;
};

struct CacheEntry {
  std::string key;
  fs::path folder;
  bool finished = false;  // false: of a build that was killed, or that is on
  bool in_use = false;    // by a run that reads it, or a builder
  std::int64_t bytes = 0;
  std::chrono::system_clock::time_point used;  // last
  std::int64_t tokens = 0;
  std::string from;  // "a.txt and 3 more, tokenizer.json"
};

/// The caches in `dir`, the one used last first. Whatever else lies there is left out.
std::vector<CacheEntry> caches_in(const fs::path& dir);

/// False where it came into use meanwhile: then it stays as it is.
bool remove_cache(const CacheEntry& entry);

}  // namespace kf::cache
