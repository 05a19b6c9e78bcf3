#pragma once
// What forward reads of weights, written in the pass that moves their masters.

#include <ATen/core/Tensor.h>

#include <vector>

#include "optim/slots.h"

namespace kf {

/// The value of a weight that can be written with its master; undefined where they are one, or others have parts of it.
at::Tensor value_beside(const Parameter& weight);
/// The same of all in `lists`; and, once they are written, the word that they are.
std::vector<at::Tensor> values_beside(const TensorLists& lists);
void say_written(const TensorLists& lists, const std::vector<at::Tensor>& values);

}  // namespace kf
