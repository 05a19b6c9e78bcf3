#pragma once
// Parts of weights on their way between ranks: gathered before they are read, gradients summed to where they are trained.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "model/parameter.h"
#include "parallel/group.h"

namespace kf {

/// The parts of some weights, one behind the other in one tensor: those of rank 0, of rank 1, ... So one call moves them all. Behind each
/// rank's parts there is room for `notes` numbers more.
class FlatParts {
 public:
  FlatParts(const ParameterList& weights, const Group& shards, at::ScalarType type, std::int64_t notes = 0);

  /// Numbers of each rank.
  const std::vector<std::int64_t>& rows() const { return rows_; }
  at::Tensor all() const { return make(total_); }
  at::Tensor mine() const { return make(rows_[static_cast<std::size_t>(rank_)]); }
  /// Of the numbers of one rank, the notes.
  at::Tensor notes(const at::Tensor& flat) const { return flat.narrow(0, flat.numel() - notes_, notes_); }

  /// Calls visit(weight, range, piece) for each part of `rank`; `flat` holds those of that rank, `piece` is the part's place in it.
  template <class Visit>
  void each_part(const ParameterList& weights, std::int64_t rank, const at::Tensor& flat, const Visit& visit) const {
    std::int64_t at = 0;
    for (const ParameterPtr& weight : weights) {
      const Range range = weight->rows_of(rank);
      visit(*weight, range, flat.narrow(0, at, range.numel()).view(range.size));
      at += range.numel();
    }
  }
  /// Calls visit(rank, its numbers) for each rank; `flat` is of all.
  template <class Visit>
  void each_rank(const at::Tensor& flat, const Visit& visit) const {
    std::int64_t at = 0;
    for (std::size_t rank = 0; rank < rows_.size(); ++rank) {
      visit(static_cast<std::int64_t>(rank), flat.narrow(0, at, rows_[rank]));
      at += rows_[rank];
    }
  }

 private:
  at::Tensor make(std::int64_t numbers) const;

  std::int64_t rank_, notes_;
  std::vector<std::int64_t> rows_;
  std::int64_t total_ = 0;
  at::TensorOptions options_;
};

/// The values of weights of one type that are cut over `shards`, from the masters of all their parts.
class Gathering {
 public:
  /// Begins. The masters stay as they are until `finish`.
  Gathering(ParameterList weights, Group& shards);
  /// Waits and writes `value`, which has storage.
  void finish();
  /// Waits and forgets what came.
  void discard() { pending_.wait(); }

 private:
  ParameterList weights_;
  std::int64_t own_;
  FlatParts parts_;
  at::Tensor all_, mine_;
  Pending pending_;
};

/// Who adds up a gradient: first those over whom its weight is cut, or who would cut it, then their replicas.
struct Adders {
  Group& shards;
  Group& replicas;
};

/// The gradients of some weights, added up over ranks. A weight has one afterwards where any rank had one: with the numbers travels a note
/// for each weight. What is 0 because a rank has no gradient counts as 0.
class Reduction {
 public:
  /// Begins; the gradients are copied as `type` and gone from the weights. `cut`: all of the weights are cut over the shards, or none is.
  Reduction(ParameterList weights, bool cut, const Adders& adders, at::ScalarType type);
  /// Waits for the shards and begins with the replicas.
  void pass_on();
  /// Waits for these. The sum is then each weight's gradient.
  void finish();

 private:
  void pack_parts(Group& shards, at::ScalarType type);
  void pack_whole(Group& shards, at::ScalarType type);
  at::Tensor any_of(const at::Tensor& notes) const;
  void keep_parts(const at::Tensor& any);
  void keep_whole(const at::Tensor& any);

  ParameterList weights_;
  bool cut_;
  Adders adders_;
  std::vector<bool> here_;  // which weights have a gradient on this rank
  at::Tensor all_, mine_;   // what the shards add up, and this rank's numbers of the sum
  Pending pending_;
};

}  // namespace kf
