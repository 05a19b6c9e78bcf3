#pragma once
// The ranks that divide the numbers of a layer (distributed.tp), as a layer sees them (Shoeybi et al. 2019, "Megatron-LM"; Korthikanti et
// al. 2022 for the split sequence).

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "model/parameter.h"
#include "parallel/group.h"

namespace kf {

struct ForwardContext;
struct PartArgs;
class Dropout;
class Module;

/// Between layers a hidden state is the same on all ranks, or, with ForwardContext::split_sequence, each has its rows of T. A layer that
/// is divided computes with all positions and some of its numbers, from `enter` to `leave`: each rank makes a share of a sum.
/// One rank: everything is the identity.
class TensorRanks {
 public:
  TensorRanks() = default;
  /// Those of a part's world. `sequence`: distributed.sequence_parallel.
  explicit TensorRanks(const PartArgs& args);
  TensorRanks(Group& group, bool sequence);

  bool many() const { return group_ != nullptr; }
  std::int64_t rank() const { return many() ? group_->rank() : 0; }
  std::int64_t size() const { return many() ? group_->size() : 1; }
  /// Only where there are many.
  Group& group() const { return *group_; }
  /// Whether training splits the sequence.
  bool splits_sequence() const { return sequence_; }
  /// What one rank has of `whole` things that divide. Throws Code::config, naming `what`, where they do not.
  std::int64_t share_of(std::int64_t whole, const char* what) const;

  /// What lies between layers -> all positions (B, T, C), for a divided computation.
  at::Tensor enter(const at::Tensor& x, const ForwardContext& context) const;
  /// A share of (B, T, C) -> the sum, as it lies between layers.
  at::Tensor leave(const at::Tensor& share, const ForwardContext& context) const;
  /// What lies between layers -> (B, T, C), the same on all ranks, computed with alike; and back.
  at::Tensor whole(const at::Tensor& x, const ForwardContext& context) const;
  at::Tensor own(const at::Tensor& x, const ForwardContext& context) const;

  /// The same x -> for a divided computation; a share -> the sum; parts along the last dim -> all of them. Whatever the sequence.
  at::Tensor shared(const at::Tensor& x) const;
  at::Tensor summed(const at::Tensor& share) const;
  at::Tensor joined(const at::Tensor& part) const;
  /// The same x -> this rank's part of its last dim.
  at::Tensor part_of(const at::Tensor& x) const;
  /// A share of a number that every rank goes on to compute its own things with: statistics of a divided row.
  at::Tensor summed_for_shares(const at::Tensor& share) const;

  /// Where this rank's rows of `length` begin, and how many they are: all of them without split_sequence.
  struct Rows {
    std::int64_t begin = 0, count = 0;
  };
  Rows rows(std::int64_t length, const ForwardContext& context) const;

  /// What `dropout` leaves of these rows (B, rows, C): of the whole (B, T, C), what it would leave of them there.
  at::Tensor dropped(const Dropout& dropout, const at::Tensor& x, const ForwardContext& context, bool training) const;

  /// For weights that lie whole on each rank. `between`: read between layers, where a split sequence makes gradients partial.
  void between(Module& module) const;
  void between(Parameter& weight) const;

 private:
  Group* group_ = nullptr;
  bool sequence_ = false;
};

/// Positions of this forward: T of the tokens, whatever part of them lies here.
std::int64_t positions_of(const ForwardContext& context);

}  // namespace kf
