#pragma once
// The framing of Weights & Biases' files: LevelDB's log format (github.com/google/leveldb, doc/log_format.md) behind a header of seven
// bytes, with zlib's CRC-32 of type and data. A file is blocks of 32 KiB; a record that meets the end of one goes on in the next.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kf::wandb {

/// What a file begins with.
std::string log_header();

/// `record` as it stands in a file that has `offset` bytes already.
std::string framed(std::string_view record, std::size_t offset);

struct LogContent {
  std::vector<std::string> records;
  bool whole = true;  // false: what comes behind them is damaged, or was not written to its end
};
/// The records of a file.
LogContent read_log(std::string_view file);

}  // namespace kf::wandb
