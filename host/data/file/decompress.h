#pragma once
// gzip and zstd as streams of plain bytes.

#include <memory>

#include "data/file/format.h"
#include "data/file/input_file.h"

namespace kf {

/// Several members or frames in a row are one stream. Throws Code::data, now or in `read`, when the data are broken or end early: what
/// could be read of such a file is never passed off as the whole.
std::unique_ptr<ByteStream> open_bytes(const fs::path& path, Compression compression);

}  // namespace kf
