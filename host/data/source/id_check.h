#pragma once
// The ids of token files against the vocabulary before the first step (data.check_ids): a wrong one is an error at the start, not in
// whichever step draws it.

#include <cstdint>
#include <string>
#include <vector>

#include "core/fs.h"
#include "data/file/token_file.h"

namespace kf {

struct IdCheckOptions {
  bool all = false;                                   // data.check_ids = "all"; else as much as sample_bytes
  std::int64_t sample_bytes = std::int64_t{8} << 30;  // of larger data an even sample of about so much is looked at
  std::int64_t memo_bytes = std::int64_t{256} << 20;  // files from this size on are remembered when they were read to the end
  std::int64_t settled_seconds = 2;                   // but not files that changed within so long: clocks of file systems are coarse
  std::string memo_dir;                               // folder of what is remembered, by path, size, times and inode; "" for none
};

/// Throws Code::data naming the first wrong id's file, place and value (of a sample: the first that it has). Files of a type that cannot
/// hold a wrong id cost nothing, and large files that are remembered neither; others are read with several threads, at the speed of the
/// disk.
void check_ids(const std::vector<const TokenFile*>& files, const IdCheckOptions& options);

}  // namespace kf
