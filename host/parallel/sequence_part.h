#pragma once
// The positions that a rank of context parallelism has of a batch of sequences, and how it reaches those of the others.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "parallel/sequence_cut.h"

namespace kf {

class Group;

/// Of B sequences of `cut.length()` positions (L), which all ranks of the group have read.
struct SequencePart {
  Group* ranks = nullptr;  // along cp; outlives it
  SequenceCut cut;
  at::Tensor positions;                // (T) int64: where this rank's tokens stand, ascending
  at::Tensor places;                   // (L) int64: where each position lies among those of all ranks, one rank after the other
  at::Tensor tokens, labels, doc_ids;  // (B, L) of the whole sequences; doc_ids undefined for one document a row

  const std::vector<Span>& pieces() const;
};

/// This rank's part of sequences. The tensors (B, L) are those of a batch, doc_ids may be undefined.
std::shared_ptr<const SequencePart> part_of_sequence(Group& ranks, SequenceOrder order, const at::Tensor& tokens, const at::Tensor& labels,
                                                     const at::Tensor& doc_ids);

/// This rank's positions of `whole`, L long along `dim`; undefined for undefined.
at::Tensor own_positions(const at::Tensor& whole, std::int64_t dim, const SequencePart& part);
/// The reverse, of all ranks: T along `dim` -> L, in order of positions, for a computation of which every rank makes another share; the
/// gradients of all ranks are summed, and each gets its part (parallel/graph.h).
at::Tensor all_positions(const at::Tensor& own, std::int64_t dim, const SequencePart& part);

}  // namespace kf
