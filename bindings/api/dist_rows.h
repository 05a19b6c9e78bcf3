#pragma once
// The rows of kf.dist.

#include "bindings/api/api.h"

namespace kf::lua {

inline constexpr ApiRow kDistRows[] = {
    {"kf.dist", "rank", "integer", "Of this process, from 0."},
    {"kf.dist", "world", "integer", "Number of processes."},
    {"kf.dist", "sum", "fun(t: kf.Tensor, axis?: string): kf.Tensor",
     "The sum over ranks, the same on all of them. Its gradient passes as it is, so what is computed from it must be the same on all "
     "ranks."},
    {"kf.dist", "shared", "fun(t: kf.Tensor, axis?: string): kf.Tensor",
     "The same tensor, for a computation of which every rank makes another share: its gradients are summed over ranks."},
    {"kf.dist", "gather", "fun(t: kf.Tensor, axis?: string, dim?: integer): kf.Tensor",
     "The tensors of all ranks, one behind the other along a dim (0), of any length each. The gradients of all ranks are summed, and each "
     "gets "
     "its part."},
    {"kf.dist", "scatter", "fun(t: kf.Tensor, axis?: string, dim?: integer): kf.Tensor",
     "This rank's part, along a dim (0), of the sum over ranks; the gradient is gathered."},
    {"kf.dist", "part", "fun(t: kf.Tensor, axis?: string, dim?: integer): kf.Tensor",
     "This rank's part, along a dim (0), of a tensor that is the same on all ranks; the gradient is joined."},
    {"kf.dist", "join", "fun(t: kf.Tensor, axis?: string, dim?: integer): kf.Tensor",
     "What parts are parts of, the same on all ranks; each takes its part of the gradient."},
    {"kf.dist", "exchange", "fun(t: kf.Tensor, axis: string, sent: integer[]): kf.Tensor, integer[]",
     "The first sent[1] rows go to rank 0, the next to rank 1, ...: what came, and how many rows from each; the gradient goes back."},
    {"kf.dist", "largest", "fun(t: kf.Tensor, axis?: string): kf.Tensor",
     "The largest over ranks, NaN where one has it; without a gradient."},
    {"kf.dist", "broadcast", "fun(t: kf.Tensor, axis: string, from: integer): kf.Tensor",
     "The tensor of one rank, counted along the axis from 0; without a gradient."},
    {"kf.dist", "tell", "fun(text: string, axis?: string): string[]", "What every rank tells."},
    {"kf.dist", "barrier", "fun(axis?: string)", "Returns when all ranks have called it."},
};

}  // namespace kf::lua
