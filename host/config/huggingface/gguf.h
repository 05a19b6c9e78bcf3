#pragma once
// The header of a GGUF file (llama.cpp's) as keys of [model].

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "config/tree/gguf.h"
#include "config/tree/node.h"
#include "core/fs.h"

namespace kf::config {

/// The [model] keys of a file of the known_architectures(), with the file as their origin; in
/// `problems` whatever of it is not understood, named. Throws Code::checkpoint or data where the file is none that can be read.
Table model_of_gguf(const fs::path& file, std::vector<std::string>& problems);
/// Of a header that is read already; `bytes` are the file's.
Table model_of_gguf(const gguf::Header& header, std::span<const std::byte> bytes, const fs::path& file, std::vector<std::string>& problems);

}  // namespace kf::config
