#pragma once
// The first bytes of raw token files, as other programs write them: read where they are known, refused by name where they are of something
// else. A file without any of these marks holds nothing but ids.

#include <cstddef>
#include <optional>
#include <span>

#include "core/fs.h"
#include "data/file/token_file.h"

namespace kf {

/// The head of llm.c and of what follows it (build-nanogpt, modded-nanogpt): 256 int32 words, a magic number, a version and the number of
/// ids. 20240520 with version 1 is uint16, 20240801 with version 7 uint32. Nothing for other files; throws Code::data for another version,
/// for a number of ids that the file does not have, and for llm.c's other files (checkpoints, tokenizers, evaluation sets).
std::optional<TokenLayout> llmc_layout(std::span<const std::byte> bytes, const fs::path& path);

/// Throws Code::data, naming the format and what to do, where the bytes begin as a file that holds no bare ids: archives, compressed files,
/// models, tables, indices.
void refuse_foreign(std::span<const std::byte> bytes, const fs::path& path);

}  // namespace kf
