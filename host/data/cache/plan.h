#pragma once
// How a source is cut into units of work. A unit becomes a shard, so the cut depends on the files alone, never on threads.

#include <cstdint>
#include <vector>

#include "data/cache/manifest.h"
#include "data/read/reader.h"

namespace kf::cache {

/// Bytes of a source's files that go into one shard: at most about a thousand shards where files can be split, and small ones for small
/// sources, so that all threads have something to do and little is lost when a build is killed.
std::int64_t unit_bytes(std::int64_t source_bytes);

/// The pieces of all files, in order, gathered into units of at least `bytes` (the last one may be smaller).
std::vector<std::vector<Piece>> plan_units(const SourceFiles& files, std::int64_t bytes);

}  // namespace kf::cache
