#include "checkpoint/host_copies.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>
#include <thread>
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

/// The share of `moves` that thread `part` of `parts` copies, by bytes. memcpy does not read what it is about to write over, as kernels of
/// tensors do: a third less traffic, and traffic is all that a copy costs.
void copy_part(const std::vector<HostCopies::Move>& moves, std::size_t all, std::size_t part, std::size_t parts) {
  const std::size_t begin = all / parts * part, end = part + 1 == parts ? all : all / parts * (part + 1);
  std::size_t at = 0;
  for (const HostCopies::Move& move : moves) {
    const std::size_t first = std::max(begin, at), last = std::min(end, at + move.bytes);
    if (first < last) {
      std::memcpy(move.to + (first - at), move.from + (first - at), last - first);
    }
    at += move.bytes;
  }
}

void copy_bytes(const std::vector<HostCopies::Move>& moves, std::size_t threads) {
  std::size_t all = 0;
  for (const HostCopies::Move& move : moves) {
    all += move.bytes;
  }
  std::vector<std::thread> others;
  for (std::size_t part = 1; part < threads; ++part) {
    others.emplace_back([&moves, all, part, threads] { copy_part(moves, all, part, threads); });
  }
  copy_part(moves, all, 0, threads);
  for (std::thread& other : others) {
    other.join();
  }
}

/// Whether bytes are all there is to copy.
bool is_plain(const at::Tensor& live) { return live.is_cpu() && live.is_contiguous() && !live.is_conj() && !live.is_neg(); }

}  // namespace

void HostCopies::take(StagedSave& staged) {
  const at::NoGradGuard no_grad;
  std::vector<Move> moves;
  take(staged.model, "model/", moves);
  take(staged.optimizer, "optimizer/", moves);
  copy_bytes(moves, static_cast<std::size_t>(std::max(1, at::get_num_threads())));
  live_.clear();
}

/// A copy from a GPU waits for it: page-locked memory makes it fast, and nothing moves a weight before it has been copied.
void HostCopies::take(StagedSave::File& file, const std::string& stem, std::vector<Move>& moves) {
  for (auto& [name, tensor] : file.tensors) {
    at::Tensor copy = kept_ ? buffers_[stem + name] : at::Tensor();
    if (!fits(copy, tensor)) {
      copy = buffer_for(tensor, kept_);
    }
    if (is_plain(tensor)) {
      moves.push_back(
          {static_cast<const std::byte*>(tensor.const_data_ptr()), static_cast<std::byte*>(copy.mutable_data_ptr()), tensor.nbytes()});
    } else {
      copy.copy_(tensor);
    }
    if (kept_) {
      buffers_[stem + name] = copy;
    }
    live_.push_back(std::exchange(tensor, std::move(copy)));
  }
}

}  // namespace kf
