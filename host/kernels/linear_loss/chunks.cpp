#include "kernels/linear_loss/chunks.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "core/error.h"
#include "kernels/product/product.h"

namespace kf {
namespace {

namespace ag = torch::autograd;

/// Sums of a pass over the chunks, and the gradients of ce + z.
struct Pass {
  at::Tensor ce, z;     // 0-dim, factors applied
  at::Tensor d_hidden;  // (N, C), undefined where not asked for
  at::Tensor d_weight;  // (V, C) fp32, of one chunk alone in its product's type; undefined where not asked for
};

Pass run_chunks(const at::Tensor& hidden, const OutputHead& head, const at::Tensor& labels, std::int64_t chunk,
                const EvaluateChunk& evaluate, bool for_hidden, bool for_weight) {
  const at::TensorOptions like = wide(hidden.narrow(0, 0, 0)).options().requires_grad(false);
  Pass out;
  out.ce = at::zeros({}, like);
  out.z = at::zeros({}, like);
  if (for_hidden) {
    out.d_hidden = at::empty(hidden.sizes(), hidden.options().requires_grad(false));
  }
  const bool widens = head.precision == OutputHead::Precision::fp32;
  const at::Tensor matrix = widens ? wide(head.weight) : head.weight;
  for (std::int64_t first = 0; first < hidden.size(0); first += chunk) {
    const std::int64_t n = std::min(chunk, hidden.size(0) - first);
    const at::Tensor h = hidden.narrow(0, first, n);
    const ChunkLoss piece = evaluate(h, head, labels.narrow(0, first, n), for_hidden || for_weight);
    out.ce.add_(piece.ce);
    out.z.add_(piece.z);
    if (for_hidden) {
      out.d_hidden.narrow(0, first, n).copy_(product_nn(piece.d_product, matrix));
    }
    if (for_weight) {
      const at::Tensor part = product_tn(piece.d_product, widens ? wide(h) : h);
      first > 0 ? void(out.d_weight.add_(part)) : void(out.d_weight = chunk < hidden.size(0) ? wide(part) : part);
    }
  }
  return out;
}

/// Whether it is seen to be 1 without a wait for a device.
bool is_one(const at::Tensor& factor) {
  return factor.is_cpu() && factor.scalar_type() == at::kFloat && *factor.const_data_ptr<float>() == 1;
}

struct ByChunks : ag::Function<ByChunks> {
  static ag::variable_list forward(ag::AutogradContext* context, const at::Tensor& hidden, const at::Tensor& weight,
                                   const at::Tensor& labels, const OutputHead& head, std::int64_t chunk, const EvaluateChunk& evaluate) {
    OutputHead detached = head;
    detached.weight = weight.detach();
    const Pass pass = run_chunks(hidden.detach(), detached, labels, chunk, evaluate, hidden.requires_grad(), weight.requires_grad());
    // Gradients are no inputs or outputs: they may lie in saved_data, which keeps no graph alive.
    context->saved_data["d_hidden"] = pass.d_hidden;
    context->saved_data["d_weight"] = pass.d_weight;
    context->saved_data["type"] = static_cast<std::int64_t>(weight.scalar_type());
    context->mark_non_differentiable({pass.ce, pass.z});
    return {pass.ce + pass.z, pass.ce, pass.z};
  }

  static ag::variable_list backward(ag::AutogradContext* context, ag::variable_list gradients) {
    KF_CHECK(context->saved_data.count("d_hidden") > 0, Code::other,
             "fused_linear_cross_entropy: its gradients are made once, and were taken by an earlier backward");
    at::Tensor d_hidden = context->saved_data["d_hidden"].toTensor();
    at::Tensor d_weight = context->saved_data["d_weight"].toTensor();
    const auto type = static_cast<at::ScalarType>(context->saved_data["type"].toInt());
    context->saved_data.clear();
    const at::Tensor& factor = gradients[0];
    for (const at::Tensor& gradient : {d_hidden, d_weight}) {
      if (gradient.defined() && !is_one(factor)) {
        gradient.mul_(factor);
      }
    }
    if (d_weight.defined()) {
      d_weight = d_weight.to(type);
    }
    return {d_hidden, d_weight, {}, {}, {}, {}};
  }
};

}  // namespace

at::Tensor wide(const at::Tensor& x) { return x.scalar_type() == at::kDouble ? x : x.to(at::kFloat); }

at::Tensor ChunkLogits::back(const at::Tensor& d, double scale) const {
  if (slope.defined()) {
    d.mul_(slope);
  }
  return d.mul_(scale).to(type);
}

ChunkLogits chunk_logits(const at::Tensor& product, const OutputHead& head, bool gradients) {
  const bool low = head.precision == OutputHead::Precision::compute;
  const at::Tensor raw = (low ? product : wide(product)) * head.scale;  // a fresh tensor
  if (head.softcap > 0) {
    const at::Tensor bent = at::tanh(raw / head.softcap);
    return {bent * head.softcap, gradients ? 1 - bent * bent : at::Tensor(), product.scalar_type()};
  }
  return {raw, {}, product.scalar_type()};
}

LinearLoss linear_loss_by_chunks(const at::Tensor& hidden, const OutputHead& head, const at::Tensor& labels, std::int64_t chunk,
                                 const EvaluateChunk& evaluate) {
  if (!at::GradMode::is_enabled() || !(hidden.requires_grad() || head.weight.requires_grad())) {
    const Pass pass = run_chunks(hidden, head, labels, chunk, evaluate, false, false);
    return {pass.ce + pass.z, pass.ce, pass.z};
  }
  const ag::variable_list out = ByChunks::apply(hidden, head.weight, labels, head, chunk, evaluate);
  return {out[0], out[1], out[2]};
}

}  // namespace kf
