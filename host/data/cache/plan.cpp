#include "data/cache/plan.h"

#include <algorithm>

namespace kf::cache {

std::int64_t unit_bytes(std::int64_t source_bytes) {
  constexpr std::int64_t kLeast = std::int64_t{8} << 20;
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  return std::clamp(source_bytes / 1024, kLeast, kMost);
}

std::vector<std::vector<Piece>> plan_units(const SourceFiles& files, std::int64_t bytes) {
  std::vector<std::vector<Piece>> units;
  std::vector<Piece> open;
  std::int64_t gathered = 0;
  for (std::size_t i = 0; i < files.files.size(); ++i) {
    const SourceFile& file = files.files[i];
    for (const FileSpan& part : split_file(file, bytes)) {
      open.push_back({i, part.begin, part.end});
      gathered += std::min(part.end, file.size) - part.begin;
      if (gathered >= bytes) {
        units.push_back(std::move(open));
        open.clear();
        gathered = 0;
      }
    }
  }
  if (!open.empty()) {
    units.push_back(std::move(open));
  }
  return units;
}

}  // namespace kf::cache
