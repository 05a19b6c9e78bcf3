#include "data/token_dataset.h"

#include <algorithm>

#include "core/error.h"
#include "core/log.h"
#include "core/text.h"
#include "data/digest.h"

namespace kf {

TokenDataset::TokenDataset(const std::vector<fs::path>& files, const fs::path& root, std::int64_t window, const TokenFileOptions& options)
    : cumulative_{0}, window_(window) {
  Digest digest;
  std::int64_t longest = 0;
  std::int64_t too_short = 0;
  files_.reserve(files.size());
  for (const fs::path& path : files) {
    const TokenFile& file = files_.emplace_back(path, options);
    const std::int64_t windows = file.tokens() / window;
    cumulative_.push_back(cumulative_.back() + windows);
    longest = std::max(longest, file.tokens());
    too_short += windows == 0 ? 1 : 0;
    digest.add_file(path.lexically_relative(root).string(), {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()});
    digest.add(token_type_name(file.type()));
  }
  KF_CHECK(
      size() > 0, Code::data,
      "{}: none of {} token files holds a window of {} ids (train.seq_len + 1), the longest has {}; lower train.seq_len or bring more data",
      root, files.size(), window, longest);
  if (too_short > 0) {
    log::info("{}: {} of {} files are shorter than a window of {} ids and are not read", root, too_short, files.size(), window);
  }
  fingerprint_ = digest.hex();
}

void TokenDataset::get(std::int64_t index, std::span<std::int64_t> window) const {
  KF_CHECK(index >= 0 && index < size(), Code::data, "sample {} asked for, the data set has {}", index, size());
  const auto file = std::upper_bound(cumulative_.begin(), cumulative_.end(), index) - cumulative_.begin() - 1;
  const auto at = static_cast<std::size_t>(file);
  files_[at].read((index - cumulative_[at]) * window_, window);
}

std::string TokenDataset::describe() const {
  std::int64_t tokens = 0;
  double bytes = 0;
  for (const TokenFile& file : files_) {
    tokens += file.tokens();
    bytes += static_cast<double>(file.bytes().size());
  }
  const TokenType type = files_.front().type();
  const bool same = std::all_of(files_.begin(), files_.end(), [&](const TokenFile& file) { return file.type() == type; });
  return format("{} {}, {}, {} tokens ({})", grouped(static_cast<std::int64_t>(files_.size())), files_.size() == 1 ? "file" : "files",
                human_bytes(bytes), grouped(tokens), same ? token_type_name(type) : "several types");
}

}  // namespace kf
