#pragma once
// A data set is a list of sequences, any of which can be read at any time: windows of seq_len + 1 token ids, or packed documents.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kf {

/// One sequence as the model sees it, each span seq_len long.
struct RowView {
  std::span<std::int64_t> tokens;
  std::span<std::int64_t> labels;   // kIgnore where nothing is predicted
  std::span<std::int64_t> doc_ids;  // empty where documents are not kept apart; kPadding behind the last document
};

/// How a stream of ids is cut into windows. `apart`: side by side, seq_len + 1 ids each, the tail left out, as training reads them.
/// `all`: each begins with the last id of the one before it and the last may be shorter, so that every id but the first of the stream is a
/// label once, as evaluation reads them.
enum class Windows { apart, all };

/// Windows of `window` ids in a stream of `tokens`.
constexpr std::int64_t windows_in(std::int64_t tokens, std::int64_t window, Windows how) {
  return how == Windows::apart ? tokens / window : tokens < 2 ? 0 : (tokens - 2) / (window - 1) + 1;
}
/// Where the window `index` begins, and how many inputs it has.
constexpr std::int64_t window_start(std::int64_t index, std::int64_t window, Windows how) {
  return index * (how == Windows::apart ? window : window - 1);
}
constexpr std::int64_t window_inputs(std::int64_t index, std::int64_t tokens, std::int64_t window, Windows how) {
  const std::int64_t left = tokens - 1 - window_start(index, window, how);
  return left < window - 1 ? left : window - 1;
}

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::int64_t size() const = 0;
  /// How many of `seq_len` inputs sample `index` has: fewer than all only at the end of Windows::all. `get` and `row` are given as many.
  virtual std::int64_t inputs(std::int64_t /*index*/, std::int64_t seq_len) const { return seq_len; }
  /// Fills `window` (seq_len + 1 ids) with sample `index`, 0 <= index < size(). Throws Code::data naming file, offset and id for an
  /// id outside the vocabulary. Safe to call from several threads, unless any_thread() is false.
  virtual void get(std::int64_t index, std::span<std::int64_t> window) const = 0;
  /// Sample `index` as inputs and labels. `eos` ends a document where only ids say so; it is needed to keep apart what lies in windows.
  virtual void row(std::int64_t index, std::optional<std::int64_t> eos, const RowView& out) const;
  /// Whether samples are packed documents: rows have document ids, and there are no windows.
  virtual bool packed() const { return false; }
  /// False: only the thread that opened it may read it (data sets in Lua).
  virtual bool any_thread() const { return true; }
  /// Which of the named data sets below this one (`sources`) sample `index` belongs to; 0 where there are none.
  virtual std::int64_t source_of(std::int64_t /*index*/) const { return 0; }
  virtual std::vector<std::string> sources() const { return {}; }
  /// "613 files, 11.2 MB of text, 11,241,807 tokens (bytes)": for the line `data` at the start of a run.
  virtual std::string describe() const = 0;
  /// Changes when the content does (names, sizes, times of files): a resumed run compares it.
  virtual std::string fingerprint() const = 0;
  /// That of each source, in the order of `sources`; of one without sources its own.
  virtual std::vector<std::string> source_fingerprints() const { return {fingerprint()}; }
};

}  // namespace kf
