#include "checkpoint/host_copies.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <utility>

namespace kf {
namespace {

/// Neighbours in memory, whatever the strides of `live`.
at::Tensor buffer_for(const at::Tensor& live, bool locked) {
  return at::empty(live.sizes(), at::TensorOptions().dtype(live.scalar_type()).device(at::kCPU).pinned_memory(locked && live.is_cuda()));
}

bool fits(const at::Tensor& buffer, const at::Tensor& live) {
  return buffer.defined() && buffer.sizes() == live.sizes() && buffer.scalar_type() == live.scalar_type();
}

}  // namespace

void HostCopies::take(Staged& staged) {
  const at::NoGradGuard no_grad;
  take(staged.model, "model/");
  take(staged.optimizer, "optimizer/");
}

/// A copy from a GPU waits for it: page-locked memory makes it fast, and nothing moves a weight before it has been copied.
void HostCopies::take(Staged::File& file, const std::string& stem) {
  for (auto& [name, tensor] : file.tensors) {
    at::Tensor copy = kept_ ? buffers_[stem + name] : at::Tensor();
    if (!fits(copy, tensor)) {
      copy = buffer_for(tensor, kept_);
    }
    copy.copy_(tensor);
    if (kept_) {
      buffers_[stem + name] = copy;
    }
    tensor = std::move(copy);
  }
}

}  // namespace kf
