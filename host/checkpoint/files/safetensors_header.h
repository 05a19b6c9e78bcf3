#pragma once
// The JSON header of a safetensors file, parsed and checked on its own; no tensors here.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/fs.h"

namespace kf {

/// The format's own limit for the header.
inline constexpr std::uint64_t kMaxSafetensorsHeader = 100'000'000;
/// The key beside the tensors that holds free strings.
inline constexpr std::string_view kSafetensorsMetadata = "__metadata__";

/// What the header says of one tensor; offsets count from the end of the header.
struct SafetensorsRow {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsRow> rows;  // in the order of the header
  std::map<std::string, std::string> metadata;
};

/// Parses `json`. Throws Code::checkpoint naming `path` and the tensor for whatever is not as the format says: other types, missing,
/// unknown or repeated keys, numbers that are no sizes. What the numbers mean is checked by `check_layout`.
SafetensorsHeader parse_safetensors_header(std::string_view json, const fs::path& path);

/// Throws unless the tensors fill the `data_bytes` after the header exactly: inside it, no holes, no overlap.
void check_layout(const SafetensorsHeader& header, std::uint64_t data_bytes, const fs::path& path);

}  // namespace kf
