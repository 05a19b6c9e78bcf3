#pragma once
// Byte-pair merging: which neighbours become one, in which order.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "data/tokenizer/flat_map.h"

namespace kf {

class Merges {
 public:
  /// Neighbours (left, right) may become `result`; lower ranks go first, equal ones from the left. A later pair replaces an earlier one.
  void add(std::uint32_t left, std::uint32_t right, std::uint32_t rank, std::uint32_t result) {
    max_rank_ = std::max(max_rank_, rank);
    if (left < kSmall && right < kSmall) {
      small_[left * kSmall + right] = {rank, result};
    } else {
      table_[key(left, right)] = {rank, result};
    }
  }

  struct Scratch {
    struct Node {
      std::uint32_t id;
      std::uint32_t rank;  // of merging with the next
      std::uint32_t result;
      std::uint32_t previous;
      std::uint32_t next;
    };
    struct Candidate {
      std::uint32_t left;
      std::uint32_t right;  // both nodes as they were when the pair was seen: with other ids it is stale
      std::uint32_t left_id;
      std::uint32_t right_id;
    };
    std::vector<Node> nodes;
    std::vector<std::vector<Candidate>> buckets;  // candidates of one rank
    std::vector<std::uint32_t> free_buckets;
    std::vector<std::uint32_t> bucket_of;  // by rank
    std::vector<std::uint32_t> ranks;      // those that have a bucket, as a heap: the lowest first
  };

  /// Merges `ids` in place until nothing merges. Ids from kFrozen on never merge. Long texts take O(n), but for the number of ranks and
  /// for ranks whose places have to be sorted.
  void apply(std::vector<std::uint32_t>& ids, Scratch& scratch) const;

  static constexpr std::uint32_t kFrozen = 1U << 31;

 private:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  struct Merge {
    std::uint32_t rank = kNone;
    std::uint32_t result = 0;
  };

  static std::uint64_t key(std::uint32_t left, std::uint32_t right) { return std::uint64_t{left} << 32 | right; }
  /// Pairs of small ids, which in byte-level vocabularies are nearly all first looks, have a table of their own.
  const Merge* find(std::uint32_t left, std::uint32_t right) const {
    if (left < kSmall && right < kSmall) {
      const Merge& merge = small_[left * kSmall + right];
      return merge.rank == kNone ? nullptr : &merge;
    }
    return table_.find(key(left, right));
  }
  void apply_short(std::vector<std::uint32_t>& ids, Scratch& scratch) const;
  void apply_long(std::vector<std::uint32_t>& ids, Scratch& scratch) const;
  /// Notes that two neighbours may merge; returns the rank, kNone where they may not.
  std::uint32_t push(std::uint32_t left, std::uint32_t right, Scratch& scratch) const;
  /// Merges the pairs of the lowest rank, from the left, until one of their merges makes a pair that has to go first.
  void merge_rank(std::uint32_t rank, Scratch& scratch) const;

  static constexpr std::uint32_t kSmall = 320;  // special tokens that come first leave room for the 256 bytes

  std::uint32_t max_rank_ = 0;
  FlatMap<Merge> table_;
  std::vector<Merge> small_ = std::vector<Merge>(std::size_t{kSmall} * kSmall);
};

}  // namespace kf
