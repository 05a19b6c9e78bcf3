#pragma once
// How many tokens an expert takes.

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace kf {

class World;

/// Which assignments an expert has room for (Lepikhin et al. 2020, GShard): it takes max(1, ceil(N k / E * factor)), first those of slot 0
/// in the order of the tokens, then those of slot 1, and so on. experts (N, k) -> (N, k) bool.
at::Tensor within_capacity(const at::Tensor& experts, std::int64_t n_experts, double factor);

/// Where the tokens of a rank stand among those of all that share the loss.
struct TokenPlaces {
  std::int64_t length = 0;  // of a sequence here: N / length of them, one after the other
  at::Tensor positions;     // (length) int64: of a cp rank's tokens in the whole sequence; undefined where they are all of it
};

/// The same among the tokens of all data ranks, in the order that they have on one rank, where sequence b of reader r stands behind
/// sequence b of reader r - 1: so N ranks drop what one rank drops. A call of all of them; numbers alone travel, E for each slot of each
/// sequence.
at::Tensor within_capacity(const at::Tensor& experts, std::int64_t n_experts, double factor, const TokenPlaces& places, const World& world);

}  // namespace kf
