#include "run/precision_note.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <chrono>

#include "config/plan/derived.h"
#include "core/text.h"
#include "kernels/gate/gate.h"
#include "kernels/product/product.h"
#include "kernels/rms_norm/rms_norm.h"

namespace kf {
namespace {

constexpr double kNoise = 1.1;              // what two measurements of the same differ by
constexpr std::int64_t kWork = 20'000'000;  // multiplications of a product that is timed, at most

/// Seconds of norm, gate, up and down, and of their backward, the best of three.
double seconds(std::int64_t rows, std::int64_t dim, std::int64_t hidden, at::ScalarType type) {
  const auto leaf = [type](std::int64_t m, std::int64_t n, double value) {  // factories ignore the option of a gradient
    return at::full({m, n}, value, at::TensorOptions(type)).set_requires_grad(true);
  };
  const at::Tensor x = leaf(rows, dim, 1);
  const at::Tensor gate = leaf(hidden, dim, 0.01);
  const at::Tensor up = leaf(hidden, dim, 0.01);
  const at::Tensor down = leaf(dim, hidden, 0.01);
  double best = 1e9;
  for (int i = 0; i < 3; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const at::Tensor normed = fused_rms_norm(x, {}, 1e-5);
    const at::Tensor y = x + kf::linear(fused_gate(GateKind::silu, kf::linear(normed, gate), kf::linear(normed, up)), down);
    torch::autograd::backward({y.sum()}, {});
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return best;
}

}  // namespace

std::string precision_note(const config::Config& config, at::ScalarType compute, at::Device device) {
  if (compute == at::kFloat || !device.is_cpu() || config.model.model_type != "transformer") {
    return {};
  }
  const std::int64_t dim = config.model.dim;
  const std::int64_t hidden =
      config::is_moe(config.model) ? config::expert_ffn_hidden_dim(config.model) : config::ffn_hidden_dim(config.model);
  const std::int64_t all = config.train.batch_size * config.train.seq_len;
  const std::int64_t rows = std::min(all, std::max<std::int64_t>(8, kWork / std::max<std::int64_t>(1, dim * hidden)));
  const at::AutoGradMode gradients(true);
  const double low = seconds(rows, dim, hidden, compute);
  const double wide = seconds(rows, dim, hidden, at::kFloat);
  if (low < kNoise * wide) {
    return {};
  }
  return format(
      "train.mixed_precision = \"{}\" is slower than fp32 on this CPU: a feed-forward layer of this model takes {} ms instead of {}; "
      "--train.mixed_precision=fp32 is faster, and takes more memory for activations",
      config.train.mixed_precision, fixed(1e3 * low, 2), fixed(1e3 * wide, 2));
}

}  // namespace kf
