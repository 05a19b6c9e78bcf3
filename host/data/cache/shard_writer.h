#pragma once
// One shard on its way to disk.

#include <cstdint>
#include <optional>
#include <vector>

#include "data/cache/encode.h"
#include "data/cache/manifest.h"

namespace kf::cache {

class ShardWriter {
 public:
  /// `wide`: ids of 32 bits instead of 16. Files of an unfinished shard of this number are replaced.
  ShardWriter(const fs::path& folder, std::size_t number, bool wide, bool mask);

  void add(const IdBatch& batch);
  const Counts& counts() const { return shard_.counts; }
  /// Durable afterwards. The rest goes into the record: what it was made from, how many documents transforms dropped, how many were skipped
  /// as broken and why.
  Shard finish(std::vector<Piece> pieces, std::int64_t dropped, std::int64_t skipped, std::vector<std::string> reasons);

 private:
  void add_ids(const std::vector<std::uint32_t>& ids);
  Counts& counts_of(std::size_t file);

  bool wide_;
  ArrayWriter ids_;
  ArrayWriter ends_;
  ArrayWriter hashes_;
  std::optional<ArrayWriter> mask_;
  std::vector<std::uint16_t> narrow_;  // reused
  Shard shard_;
};

/// Whether the files of a shard lie in the folder with the sizes that the record says.
bool is_there(const fs::path& folder, std::size_t number, const Shard& shard);
/// Removes whatever lies there of a shard.
void remove_shard(const fs::path& folder, std::size_t number);

}  // namespace kf::cache
