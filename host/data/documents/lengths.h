#pragma once
// How long documents are: counts by powers of two.

#include <cstdint>
#include <string>
#include <vector>

#include "data/documents/documents.h"

namespace kf {

struct Lengths {
  std::int64_t least = 0;
  std::int64_t most = 0;
  /// Documents of 0 ids, 1, 2 to 3, 4 to 7, ...; as many as the longest needs.
  std::vector<std::int64_t> buckets{0};

  /// The shortest length of a bucket.
  static std::int64_t from(std::size_t bucket) { return bucket == 0 ? 0 : std::int64_t{1} << (bucket - 1); }
  /// "4 to 7"
  static std::string label(std::size_t bucket);
};

Lengths lengths_of(const Documents& documents);

}  // namespace kf
