#pragma once
// Calls of a group that autograd sees: each is the adjoint of another one, so they may be differentiated twice.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "parallel/group.h"

namespace kf {

// All ranks of the group call the same ones in the same order, and so does their backward: graphs must have the same shape on all ranks,
// and a result that one rank does not need must be used there, too (times 0). The group outlives the graph. On one rank each gives `x`.
// A tensor is "the same" where all ranks hold equal values, and "partial" where what counts is the sum over ranks. The gradient of what
// is the same is the same, too, and that of a part of a tensor is the part of its gradient.

/// The same x, for a computation of which every rank makes another share: its gradients are partial, and are summed.
at::Tensor shared(const at::Tensor& x, Group& group);
/// Partial x -> its sum, the same on all ranks, computed with alike from here on.
at::Tensor summed(const at::Tensor& x, Group& group);

/// Parts along `dim`, of even_rows(length, size) rows -> all of them, for a computation of which every rank makes another share: the
/// gradients are summed and every rank gets its part.
at::Tensor gathered(const at::Tensor& part, std::int64_t dim, std::int64_t length, Group& group);
/// The same of parts of `rows` rows, by rank.
at::Tensor gathered(const at::Tensor& part, std::int64_t dim, const std::vector<std::int64_t>& rows, Group& group);
/// Partial x -> this rank's part, along `dim`, of the sum.
at::Tensor scattered(const at::Tensor& x, std::int64_t dim, Group& group);
at::Tensor scattered(const at::Tensor& x, std::int64_t dim, const std::vector<std::int64_t>& rows, Group& group);

/// What `gathered` gave -> the same, for a computation that all ranks make alike beside the shares of theirs: its gradient, which all have,
/// must count once among theirs, so each rank counts its part along `dim`.
at::Tensor alike(const at::Tensor& whole, std::int64_t dim, Group& group);

/// The same x -> this rank's part of it along `dim`.
at::Tensor own_part(const at::Tensor& x, std::int64_t dim, Group& group);
/// Parts along `dim` -> all of them, the same on all ranks, computed with alike from here on.
at::Tensor joined(const at::Tensor& part, std::int64_t dim, std::int64_t length, Group& group);

/// Group::exchange of rows (dim 0); the gradient goes the same way back.
at::Tensor exchanged(const at::Tensor& x, const Splits& splits, Group& group);

}  // namespace kf
