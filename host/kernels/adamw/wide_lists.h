#pragma once
// For kernels that know fp32 alone.

#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

#include "kernels/adamw/adamw.h"

namespace kf {

/// What is stored in 16 or 8 bits as fp32 copies, which `write_back` rounds to nearest and puts back.
class WorkingCopies {
 public:
  /// `stored` itself where it is fp32. `sizes`: the weight's.
  at::Tensor of(const at::Tensor& stored, at::IntArrayRef sizes);
  void write_back() const;

 private:
  std::vector<std::pair<at::Tensor, at::Tensor>> copies_;  // stored, working
};

/// All of an update: `lists` are fp32, and the factor of the gradients is in them.
class WideLists {
 public:
  explicit WideLists(const AdamWLists& stored);
  AdamWLists lists() const { return {weights_, gradients_, m_, v_, steps_, {}, {}, ok_}; }
  /// After the update: puts the copies back, and writes the values.
  void write_back() const;

 private:
  std::vector<at::Tensor> widened(at::TensorList stored, at::TensorList weights);

  WorkingCopies copies_;
  std::vector<at::Tensor> weights_, gradients_, m_, v_, steps_, values_;
  at::Tensor ok_;
};

}  // namespace kf
