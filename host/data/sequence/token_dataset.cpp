#include "data/sequence/token_dataset.h"

#include <algorithm>

#include "core/digest.h"
#include "core/error.h"
#include "core/log.h"
#include "core/text.h"

namespace kf {

TokenDataset::TokenDataset(const std::vector<fs::path>& files, const fs::path& root, std::int64_t window, const TokenFileOptions& options,
                           Windows how)
    : cumulative_{0}, window_(window), how_(how) {
  Digest digest;
  std::int64_t longest = 0;
  std::int64_t too_short = 0;
  files_.reserve(files.size());
  for (const fs::path& path : files) {
    const TokenFile& file = files_.emplace_back(path, options);
    const std::int64_t windows = windows_in(file.tokens(), window, how);
    cumulative_.push_back(cumulative_.back() + windows);
    longest = std::max(longest, file.tokens());
    too_short += windows == 0 ? 1 : 0;
    digest.add_file(path.lexically_relative(root).string(), {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()});
    digest.add(token_type_name(file.type()));
  }
  KF_CHECK(size() > 0 || how == Windows::apart, Code::data, "{}: none of {} token files holds two ids, which an evaluation needs", root,
           files.size());
  KF_CHECK(
      size() > 0, Code::data,
      "{}: none of {} token files holds a window of {} ids (train.seq_len + 1), the longest has {}; lower train.seq_len or bring more data",
      root, files.size(), window, longest);
  if (too_short > 0) {
    log::info("{}: {} of {} files are shorter than {} ids and are not read", root, too_short, files.size(),
              how == Windows::all ? "two" : format("a window of {}", window));
  }
  fingerprint_ = digest.hex();
}

std::size_t TokenDataset::file_of(std::int64_t index) const {
  KF_CHECK(index >= 0 && index < size(), Code::data, "sample {} asked for, the data set has {}", index, size());
  return static_cast<std::size_t>(std::upper_bound(cumulative_.begin(), cumulative_.end(), index) - cumulative_.begin() - 1);
}

std::int64_t TokenDataset::inputs(std::int64_t index, std::int64_t /*seq_len*/) const {
  const std::size_t at = file_of(index);
  return window_inputs(index - cumulative_[at], files_[at].tokens(), window_, how_);
}

void TokenDataset::get(std::int64_t index, std::span<std::int64_t> window) const {
  const std::size_t at = file_of(index);
  files_[at].read(window_start(index - cumulative_[at], window_, how_), window);
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
