#pragma once
// Tokens sorted by expert, and back: every expert then works on neighbouring rows. No operator here has colliding writes, so that results
// are the same bit for bit from run to run on every device.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace kf {

/// The R = N k assignments of N tokens to k experts each, sorted by expert; inside an expert tokens keep their order.
class ExpertRows {
 public:
  ExpertRows(const at::Tensor& experts, std::int64_t n_experts);  // (N, k) int64

  at::Tensor order;    // (R) int64: row r is assignment order[r] = token k + slot
  at::Tensor inverse;  // (N, k) int64: the row of an assignment
  at::Tensor token;    // (R) int64
  at::Tensor expert;   // (R) int64, ascending
  at::Tensor counts;   // (E) int64
  std::int64_t slots = 0;

  /// (E) int32, where each expert's rows end; stays on the device.
  at::Tensor ends() const;
  /// E + 1 borders of the experts' rows on the host; waits for the device.
  std::vector<std::int64_t> borders() const;
};

/// x (N, C) -> (R, C), row r is x[token[r]].
at::Tensor gather_rows(const at::Tensor& x, const ExpertRows& rows);
/// y (R, C) -> (R, C), of one slot: rows sorted by expert back in the order of their tokens.
at::Tensor unsorted_rows(const at::Tensor& y, const ExpertRows& rows);
/// y (R, C), weights (N, k) -> (N, C) in the type of y: sum over the slots of weight times row; products and sums in the wider type.
at::Tensor combine_rows(const at::Tensor& y, const at::Tensor& weights, const ExpertRows& rows);
/// (N, k) -> (R, 1): each row's own value.
at::Tensor per_row(const at::Tensor& assignments, const ExpertRows& rows);
/// x itself; its gradient is multiplied by `factors`, which broadcast.
at::Tensor scale_gradient(const at::Tensor& x, const at::Tensor& factors);

}  // namespace kf
