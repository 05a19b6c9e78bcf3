#pragma once
// A data set is a list of sequences, any of which can be read at any time: windows of seq_len + 1 token ids, or packed documents.

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace kf {

/// One sequence as the model sees it, each span seq_len long.
struct RowView {
  std::span<std::int64_t> tokens;
  std::span<std::int64_t> labels;   // kIgnore where nothing is predicted
  std::span<std::int64_t> doc_ids;  // empty where documents are not kept apart; kPadding behind the last document
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::int64_t size() const = 0;
  /// Fills `window` (seq_len + 1 ids) with sample `index`, 0 <= index < size(). Throws Code::data naming file, offset and id for an
  /// id outside the vocabulary. Safe to call from several threads, unless any_thread() is false.
  virtual void get(std::int64_t index, std::span<std::int64_t> window) const = 0;
  /// Sample `index` as inputs and labels. `eos` ends a document where only ids say so; it is needed to keep apart what lies in windows.
  virtual void row(std::int64_t index, std::optional<std::int64_t> eos, const RowView& out) const;
  /// Whether samples are packed documents: rows have document ids, and there are no windows.
  virtual bool packed() const { return false; }
  /// False: only the thread that opened it may read it (data sets in Lua).
  virtual bool any_thread() const { return true; }
  /// "613 files, 11.2 MB of text, 11,241,807 tokens (bytes)": for the line `data` at the start of a run.
  virtual std::string describe() const = 0;
  /// Changes when the content does (names, sizes, times of files): a resumed run compares it.
  virtual std::string fingerprint() const = 0;
};

}  // namespace kf
