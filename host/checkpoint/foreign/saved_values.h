#pragma once
// Numbers of a file of torch.save as tensors: whole, or a range alone.

#include <ATen/core/Tensor.h>

#include "checkpoint/files/pieces.h"
#include "checkpoint/pickle/saved_file.h"

namespace kf {

at::ScalarType scalar_type(const pickle::NumberType& type);

/// Copies a range of a tensor to a place of the same size, of any type. A whole tensor's storage is compared with its checksum. Throws
/// Code::checkpoint; `name` is for messages.
void read_saved(const pickle::SavedFile& file, const pickle::SavedTensor& tensor, const std::string& name, const Range& range,
                const at::Tensor& into);

/// All of it, as a copy.
at::Tensor read_saved(const pickle::SavedFile& file, const pickle::SavedTensor& tensor, const std::string& name);

}  // namespace kf
