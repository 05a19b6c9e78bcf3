#pragma once
// Files of token ids as windows, never across files.

#include <cstdint>
#include <string>
#include <vector>

#include "data/file/token_file.h"
#include "data/sequence/dataset.h"

namespace kf {

class TokenDataset final : public Dataset {
 public:
  /// `window` is train.seq_len + 1. `root`: names in the fingerprint are relative to it. Throws Code::data when no file holds a window.
  TokenDataset(const std::vector<fs::path>& files, const fs::path& root, std::int64_t window, const TokenFileOptions& options,
               Windows how = Windows::apart);

  std::int64_t size() const override { return cumulative_.back(); }
  std::int64_t inputs(std::int64_t index, std::int64_t seq_len) const override;
  void get(std::int64_t index, std::span<std::int64_t> window) const override;
  std::string describe() const override;
  std::string fingerprint() const override { return fingerprint_; }

  const std::vector<TokenFile>& files() const { return files_; }
  /// Windows before each file, and after the last: 0, n0, n0 + n1, ...
  const std::vector<std::int64_t>& cumulative() const { return cumulative_; }

 private:
  std::size_t file_of(std::int64_t index) const;

  std::vector<TokenFile> files_;
  std::vector<std::int64_t> cumulative_;
  std::int64_t window_;
  Windows how_;
  std::string fingerprint_;
};

}  // namespace kf
