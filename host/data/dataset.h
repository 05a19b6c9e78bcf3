#pragma once
// A data set is a list of windows of seq_len + 1 token ids, any of which can be read at any time.

#include <cstdint>
#include <span>
#include <string>

namespace kf {

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::int64_t size() const = 0;
  /// Fills `window` (seq_len + 1 ids) with sample `index`, 0 <= index < size(). Throws Code::data naming file, offset and id for an
  /// id outside the vocabulary. Safe to call from several threads.
  virtual void get(std::int64_t index, std::span<std::int64_t> window) const = 0;
  /// "613 files, 11.2 MB of text, 11,241,807 tokens (bytes)": for the line `data` at the start of a run.
  virtual std::string describe() const = 0;
  /// Changes when the content does (names, sizes, times of files): a resumed run compares it.
  virtual std::string fingerprint() const = 0;
};

}  // namespace kf
