#include "data/documents/lengths.h"

#include <algorithm>
#include <bit>

#include "core/text.h"

namespace kf {

std::string Lengths::label(std::size_t bucket) {
  const std::int64_t first = from(bucket);
  return bucket < 2 ? grouped(first) : format("{} to {}", grouped(first), grouped(2 * first - 1));
}

Lengths lengths_of(const Documents& documents) {
  Lengths out;
  const std::int64_t count = documents.count();
  std::int64_t begin = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t end = documents.start(i + 1);
    const std::int64_t length = end - begin;
    begin = end;
    out.least = i == 0 ? length : std::min(out.least, length);
    out.most = std::max(out.most, length);
    const auto bucket = static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(length)));
    out.buckets.resize(std::max(out.buckets.size(), bucket + 1), 0);
    ++out.buckets[bucket];
  }
  return out;
}

}  // namespace kf
