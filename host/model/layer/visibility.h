#pragma once
// Who sees whom in attention: causal, inside a document, inside a layer's reach. Made once a forward and kind of layer.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/attention/attention.h"
#include "parallel/sequence_part.h"

namespace kf {

/// How far back the queries of a layer see.
struct Reach {
  enum class Kind { global, local, chunk };
  Kind kind = Kind::global;
  std::int64_t size = 0;  // local: keys seen, the query's own included; chunk: positions of a chunk
  bool operator==(const Reach&) const = default;
};

/// How a block of queries sees a block of keys.
struct Sight {
  enum class Kind { none, all, triangle, some };  // triangle: query i of the block sees its keys 0 .. i
  Kind kind = Kind::none;
  std::shared_ptr<const KeyRanges> ranges;  // some: of the keys of the block
};

/// `fresh` queries behind `past` positions that a cache holds. With document ids a row holds several documents, and nothing is cached.
/// With `starts` (B) int64 row b begins at position starts[b]: what lies before is padding, which nobody sees but itself. With `lengths`
/// (B) int64 row b ends after lengths[b] positions: what follows is padding, which nothing that comes before it sees.
class Visibility {
 public:
  Visibility(std::int64_t past, std::int64_t fresh, at::Device device, at::Tensor starts = {}, at::Tensor lengths = {})
      : past_(past), fresh_(fresh), device_(device), starts_(std::move(starts)), ends_(std::move(lengths)) {}
  /// Rows of documents: (B, T) int64 ids; neighbours with one id are one document.
  explicit Visibility(const at::Tensor& doc_ids);
  /// The queries at a rank's positions of longer sequences, whose keys are on several ranks. Masks are over all keys, in order.
  explicit Visibility(std::shared_ptr<const SequencePart> part);

  /// Null where all positions are here.
  const SequencePart* part() const { return part_.get(); }
  /// Of a part: these positions among each other.
  Sight between(const Reach& reach, const Span& queries, const Span& keys) const;
  /// Of a part: the keys that these queries may see at most.
  static Span seen_keys(const Reach& reach, const Span& queries);

  /// Of a part: the keys among `keys` that each of these queries sees.
  std::shared_ptr<const KeyRanges> ranges_between(const Reach& reach, const Span& queries, const Span& keys) const;
  /// The keys that each query sees; null where `causal()` (or, for one query, nothing at all) says it all. Not of a part.
  std::shared_ptr<const KeyRanges> ranges(const Reach& reach) const;
  /// (B or 1, 1, T, past + T) bool, true = may attend. Undefined where `causal()` (or, for one query, nothing at all) says it all:
  /// those have faster kernels.
  at::Tensor mask(const Reach& reach) const;
  /// Whether an undefined mask stands for a triangle: the usual case without a cache.
  bool causal() const { return past_ == 0 && part_ == nullptr; }
  /// (B or 1, T) int64: the place of each query inside its document, from 0. The first position of a row counts as a document's first;
  /// padding is at 0.
  at::Tensor positions() const;
  /// (B or 1, T or 1) int64: how long the text is that each query belongs to, padding left out: the row, or its document where documents
  /// are kept apart. Undefined where all are past + fresh long.
  at::Tensor lengths() const;

 private:
  at::Tensor places(std::int64_t first, std::int64_t end) const;  // (B or 1, end - first): index less the row's start
  at::Tensor first_keys(const Reach& reach) const;                // (B or 1, T)
  at::Tensor mask_of_part(const Reach& reach) const;
  bool plain(const Reach& reach) const;  // no mask is needed

  std::int64_t past_ = 0;
  std::int64_t fresh_ = 0;
  at::Device device_;
  at::Tensor doc_ids_;  // (B, T), undefined for one document a row
  at::Tensor starts_;   // (B), undefined without padding on the left
  at::Tensor ends_;     // (B), undefined without padding on the right
  std::shared_ptr<const SequencePart> part_;
  mutable at::Tensor positions_, lengths_;
  mutable at::Tensor whole_positions_;  // of a part with documents: (B, L)
  mutable std::vector<std::pair<Reach, std::shared_ptr<const KeyRanges>>> ranges_;
  mutable std::vector<std::pair<Reach, at::Tensor>> masks_;  // of a part
  struct Block {
    Reach reach;
    Span queries, keys;
    bool operator==(const Block&) const = default;
  };
  mutable std::vector<std::pair<Block, std::shared_ptr<const KeyRanges>>> blocks_;  // null where nothing is seen
};

}  // namespace kf
