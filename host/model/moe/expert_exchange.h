#pragma once
// Tokens on their way to the ranks that have their experts, and back (Lepikhin et al. 2020, GShard, section 3.3).

#include <ATen/core/Tensor.h>

#include "kernels/grouped_linear/expert_rows.h"
#include "parallel/group.h"

namespace kf {

/// The rows of one layer. Every rank of the group has E / size experts, in order of ranks. The numbers of rows go round once, here; then a
/// row is sent once and comes back once, and nothing is padded: a rank may send or get none. All ranks make the same calls, also in
/// backward, where the gradients take the same ways.
class ExpertExchange {
 public:
  /// `counts` (E) int64: rows of this rank for each expert. Waits for the device.
  ExpertExchange(const at::Tensor& counts, Group& ranks);

  /// This rank's rows for experts anywhere.
  std::int64_t sent() const { return sent_; }
  /// Rows of all ranks for the experts of this rank, sorted by expert; inside of one by rank, then in the order of sending.
  const ExpertRows& rows() const { return rows_; }
  /// (sent, C) sorted by expert -> (received, C), sorted as `rows`.
  at::Tensor there(const at::Tensor& x) const;
  /// The reverse.
  at::Tensor back(const at::Tensor& y) const;

 private:
  /// For each row that comes, in the order in which it comes, (R, 1) int64: which of this rank's experts it is for.
  at::Tensor agree(const at::Tensor& counts);

  Group& ranks_;
  Splits splits_;
  std::int64_t sent_ = 0;
  ExpertRows rows_;
};

}  // namespace kf
