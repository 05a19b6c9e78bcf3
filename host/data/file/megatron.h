#pragma once
// The index beside a Megatron data set (X.bin with X.idx): the type of the ids and where documents begin.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/fs.h"
#include "data/file/token_file.h"

namespace kf {

struct MegatronIndex {
  TokenType type = TokenType::uint16;
  std::int64_t tokens = 0;
  std::vector<std::int64_t> document_starts;  // in ids; the last is the end, `tokens`
};

/// Parses an index (MMIDIDX, version 1). Every count is checked against the file before memory is taken for it, every sequence against its
/// neighbours: they lie one after the other. Throws Code::data naming `path`, the entry and both values.
MegatronIndex parse_megatron_index(std::span<const std::byte> bytes, const fs::path& path);

/// Whether a file X.idx with the mark of an index lies beside X.bin: cheaper than reading it.
bool has_megatron_index(const fs::path& bin);

/// The index of `bin` when a file X.idx with its mark lies beside it; nothing otherwise. Throws Code::data when it is broken, or when `bin`
/// has not the size that it says.
std::optional<MegatronIndex> find_megatron_index(const fs::path& bin);

}  // namespace kf
