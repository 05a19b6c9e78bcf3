#pragma once
// The same documents without a cache: for tokenizers and transforms whose content cannot be known.

#include <memory>

#include "data/cache/cache.h"
#include "data/documents/documents.h"

namespace kf::cache {

/// Reads and encodes everything in the calling thread. `dir`, `options` and hashes of the request are not used.
std::shared_ptr<const Documents> read_into_memory(const CacheRequest& request);

}  // namespace kf::cache
