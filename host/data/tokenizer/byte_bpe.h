#pragma once
// Byte-level BPE: pieces of bytes to ids, through a cache of whole pieces.

#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

#include "data/tokenizer/merges.h"
#include "data/tokenizer/scanners.h"
#include "data/tokenizer/vocabulary.h"

namespace kf {

/// Ids of pieces seen before. One per thread; a new piece takes the place of an old one, so it never grows.
class PieceCache {
 public:
  static constexpr std::size_t kKeyBytes = 15;  // longer pieces, and those of more ids, are long entries
  static constexpr std::size_t kMaxIds = 4;

  struct Entry {
    std::uint64_t low = 0;   // the piece's bytes, then zeros; in the last byte its size and, above that, how many ids it has
    std::uint64_t high = 0;  // 0: nothing is here
    std::uint32_t ids[kMaxIds] = {};
  };
  /// One cache line: the newer entry first.
  struct alignas(64) Set {
    Entry entries[2];
  };
  struct Long {
    std::string piece;
    std::vector<std::uint32_t> ids;
  };

  PieceCache();
  Set& set(std::uint64_t low, std::uint64_t high) { return sets_[slot(low, high)]; }
  Long& long_entry(std::string_view piece);

 private:
  static constexpr int kBits = 17;  // 8 MB: more than a core's own cache, but the rarest half of the words is worth it
  static constexpr int kLongBits = 12;
  static std::size_t slot(std::uint64_t low, std::uint64_t high) {
    return ((low ^ (high * 0x9e3779b97f4a7c15U)) * 0xff51afd7ed558ccdU) >> (64 - kBits);
  }

  struct Free {
    void operator()(Set* sets) const { std::free(sets); }
  };
  std::unique_ptr<Set[], Free> sets_;
  std::vector<Long> long_;
};

class ByteBpe {
 public:
  struct Scratch {
    PieceCache cache;
    Merges::Scratch merges;
    std::vector<std::uint32_t> ids;
  };

  static constexpr std::uint32_t kNoId = 0xffffffff;

  /// `tokens`: bytes to ids. `byte_ids`: of single bytes; a byte with kNoId is left out of the ids, as Hugging Face's tokenizers do.
  /// `whole_first`: a piece that is a token is that token, whatever merging would give.
  ByteBpe(Vocabulary tokens, Merges merges, std::array<std::uint32_t, 256> byte_ids, bool whole_first);

  /// Ranks as in tiktoken's files: neighbours whose bytes together are a token may merge, the lowest id first. All 256 bytes must be
  /// tokens.
  static ByteBpe from_ranks(Vocabulary tokens);

  /// One piece.
  void encode(std::string_view piece, std::vector<std::uint32_t>& out, Scratch& scratch) const;
  /// All pieces of `text`, split by `pattern`.
  void encode_all(std::string_view text, scan::Pattern pattern, std::vector<std::uint32_t>& out, Scratch& scratch) const;

  const Vocabulary& tokens() const { return tokens_; }

 private:
  /// A piece that the cache does not know, or a long one: `low` and `high` are its key, 0 where it has none.
  void encode_slow(std::string_view piece, std::uint64_t low, std::uint64_t high, std::vector<std::uint32_t>& out, Scratch& scratch) const;
  /// Into scratch.ids, without the cache.
  void merge(std::string_view piece, Scratch& scratch) const;

  Vocabulary tokens_;
  Merges merges_;
  std::array<std::uint32_t, 256> byte_ids_;
  bool whole_first_;
};

}  // namespace kf
