#pragma once
// Windows into inputs and labels, with or without keeping documents apart.

#include <cstdint>
#include <span>

namespace kf {

/// Label of a position that is not counted.
inline constexpr std::int64_t kIgnore = -100;
/// Document id of positions that hold nothing. They see each other alone, their token is kPaddingToken and their label kIgnore.
inline constexpr std::int64_t kPadding = -1;
inline constexpr std::int64_t kPaddingToken = 0;

/// A window of T + 1 ids gives T inputs and T labels, one position later.
void split_window(std::span<const std::int64_t> window, std::span<std::int64_t> inputs, std::span<std::int64_t> labels);

/// As split_window, and says which document each input belongs to (counted from 0 within the window; an `eos` is the last token of its
/// document). A label in another document than its input becomes kIgnore; predicting `eos` itself counts. Positions are not reset.
void pack_window(std::span<const std::int64_t> window, std::int64_t eos, std::span<std::int64_t> inputs, std::span<std::int64_t> labels,
                 std::span<std::int64_t> doc_ids);

}  // namespace kf
