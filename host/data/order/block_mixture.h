#pragma once
// A mixture whose every block of sequences holds each source in its exact share.

#include <cstdint>
#include <limits>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace kf {

/// One sequence of a mixture: the how-manieth of which source. Ordinals go on over the passes of a source.
struct Draw {
  std::int64_t source = 0;
  std::int64_t ordinal = 0;
  bool operator==(const Draw&) const = default;
};

/// What happens when a source is used up.
enum class MixStop { repeat, first, drop };

struct BlockMixtureOptions {
  std::int64_t block = 1;  // sequences
  std::int64_t seed = 0;   // of the order inside the blocks
  MixStop stop = MixStop::repeat;
  std::int64_t epochs = 0;  // repeat: the end after so many times all sources together (0: none); else passes of each source (0: one)
};

/// Sequence n of the whole mixture, over all ranks, for every n: what is read depends on n and the changes alone. After every block each
/// source has been drawn floor or ceil of its share of what was drawn since the last change; which of the two, the earliest deadline
/// decides (Liu and Layland's rule on unit jobs: source i's j-th sequence is due when its share has grown to j + 1), so that no block ever
/// has too little room for what is due. Shares are kept in units of 2^-40, exactly. Sources of a block are read in random order; each
/// source's own sequences come in order. Memory: one block; seeking costs one pass over the blocks since the last change.
class BlockMixture {
 public:
  static constexpr std::int64_t kEndless = std::numeric_limits<std::int64_t>::max();

  /// `sizes`: sequences of one pass. `probabilities` sum to 1. Throws Code::data for a source that has a share and no sequences.
  BlockMixture(std::vector<std::int64_t> sizes, const std::vector<double>& probabilities, const BlockMixtureOptions& options);

  /// Sequences until the end; kEndless without one.
  std::int64_t size() const { return size_; }
  /// From sequence `first` on other shares; every source goes on where it was. Later changes are forgotten. Throws Code::data for a
  /// `first` before the last change.
  void change(std::int64_t first, const std::vector<double>& probabilities);
  /// Sequences first, first + stride, first + 2 stride, ... Safe to call from several threads. Throws Code::data beyond the end.
  void read(std::int64_t first, std::int64_t stride, std::span<Draw> out);
  /// Sequences of each source before sequence `n`.
  std::vector<std::int64_t> counts(std::int64_t n);

 private:
  using Counts = std::vector<std::int64_t>;
  /// A stretch with the same shares.
  struct Stage {
    std::int64_t first = 0;
    Counts base;                        // drawn before it
    std::vector<std::uint64_t> shares;  // in units of 2^-40; they sum to 2^40, or are all 0 at the end of everything
  };
  /// Where reading stands: one block, laid out.
  struct Cursor {
    std::size_t stage = 0;
    std::int64_t block = -1;  // within the stage
    Counts before;            // drawn before the block
    Counts in_block;
    std::vector<Draw> draws;  // in the order in which they are read
  };

  void set_shares(Stage& stage, const std::vector<double>& probabilities) const;
  /// What a block of the stage draws behind `before`.
  Counts block_counts(const Stage& stage, std::int64_t block, const Counts& before) const;
  void limit(const Stage& stage, const Counts& before, Counts& counts) const;
  std::int64_t limit_of(std::size_t source) const;
  void find_end();
  void find_drops();
  void find_first_end();
  void lay_out(const Stage& stage, std::int64_t block, const Counts& before, Cursor& out) const;
  void seek(std::int64_t n);
  Counts counts_at(std::int64_t n);

  std::vector<std::int64_t> sizes_;
  BlockMixtureOptions options_;
  std::vector<Stage> stages_;
  std::int64_t size_ = kEndless;
  std::int64_t last_change_ = 0;
  Cursor cursor_;
  mutable std::mutex mutex_;  // of the cursor
};

}  // namespace kf
