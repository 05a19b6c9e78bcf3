#include "kernels/linear_loss/linear_loss.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "core/error.h"
#include "kernels/product/product.h"

namespace kf {
namespace {

namespace ag = torch::autograd;

/// fp32, or the type itself where it is wider (gradient checks run in double).
at::Tensor wide(const at::Tensor& x) { return x.scalar_type() == at::kDouble ? x : x.to(at::kFloat); }

/// Sums of a pass over the chunks, and the gradients of ce_factor * ce + z_factor * z.
struct Pass {
  at::Tensor ce, z;     // 0-dim, factors applied
  at::Tensor d_hidden;  // (N, C), undefined where not asked for
  at::Tensor d_weight;  // (V, C) fp32
};

/// One chunk: logits, losses and d total / d logits as they leave the matrix product.
struct Chunk {
  at::Tensor ce, z;
  at::Tensor d_raw;  // (n, V) in the type of the product, only with gradients
};

Chunk evaluate_chunk(const at::Tensor& hidden, const OutputHead& head, const at::Tensor& labels, const LinearLossOptions& options,
                     bool gradients) {
  const bool low = head.precision == OutputHead::Precision::compute;
  const at::Tensor product = head_product(hidden, head);
  const at::Tensor raw = (low ? product : wide(product)) * head.scale;  // (n, V), a fresh tensor
  at::Tensor slope;                                                     // of the cap
  at::Tensor logits = raw;
  if (head.softcap > 0) {
    const at::Tensor bent = at::tanh(raw / head.softcap);
    logits = bent * head.softcap;
    slope = gradients ? 1 - bent * bent : at::Tensor();
  }
  const at::Tensor lse = logits.logsumexp(-1);  // (n)
  const at::Tensor counts = labels.ne(kIgnoredLabel);
  const at::Tensor index = labels.clamp_min(0).unsqueeze(1);
  const at::Tensor picked = logits.gather(1, index).squeeze(1);
  Chunk out;
  const at::Tensor weight = counts.to(wide(lse).scalar_type()) * options.ce;  // (n)
  out.ce = (wide(lse - picked) * weight).sum();
  out.z = wide(lse).square().sum() * options.z;
  if (gradients) {
    // d ce / d logits = softmax - onehot, d lse^2 / d logits = 2 lse softmax.
    at::Tensor d = at::exp(logits - lse.unsqueeze(1)).mul_((weight + lse * (2 * options.z)).unsqueeze(1));
    d.scatter_add_(1, index, -weight.to(d.scalar_type()).unsqueeze(1));
    if (slope.defined()) {
      d.mul_(slope);
    }
    out.d_raw = d.mul_(head.scale).to(product.scalar_type());
  }
  return out;
}

Pass run_chunks(const at::Tensor& hidden, const OutputHead& head, const at::Tensor& labels, const LinearLossOptions& options,
                bool for_hidden, bool for_weight) {
  const at::TensorOptions like = wide(hidden.narrow(0, 0, 0)).options().requires_grad(false);
  Pass out;
  out.ce = at::zeros({}, like);
  out.z = at::zeros({}, like);
  if (for_hidden) {
    out.d_hidden = at::empty(hidden.sizes(), hidden.options().requires_grad(false));
  }
  if (for_weight) {
    out.d_weight = at::zeros(head.weight.sizes(), like);
  }
  const bool widens = head.precision == OutputHead::Precision::fp32;
  const at::Tensor matrix = widens ? wide(head.weight) : head.weight;
  for (std::int64_t first = 0; first < hidden.size(0); first += options.chunk) {
    const std::int64_t n = std::min(options.chunk, hidden.size(0) - first);
    const at::Tensor h = hidden.narrow(0, first, n);
    const Chunk piece = evaluate_chunk(h, head, labels.narrow(0, first, n), options, for_hidden || for_weight);
    out.ce.add_(piece.ce);
    out.z.add_(piece.z);
    if (for_hidden) {
      out.d_hidden.narrow(0, first, n).copy_(product_nn(piece.d_raw, matrix));
    }
    if (for_weight) {
      out.d_weight.add_(product_tn(piece.d_raw, widens ? wide(h) : h));
    }
  }
  return out;
}

struct FusedFunction : ag::Function<FusedFunction> {
  static ag::variable_list forward(ag::AutogradContext* context, const at::Tensor& hidden, const at::Tensor& weight,
                                   const at::Tensor& labels, double scale, double softcap, std::int64_t precision, double ce_factor,
                                   double z_factor, std::int64_t chunk) {
    const bool for_hidden = hidden.requires_grad();
    const bool for_weight = weight.requires_grad();
    const OutputHead head{weight.detach(), scale, softcap, static_cast<OutputHead::Precision>(precision)};
    const Pass pass = run_chunks(hidden.detach(), head, labels, {ce_factor, z_factor, chunk}, for_hidden, for_weight);
    // Gradients are no inputs or outputs: they may lie in saved_data, which keeps no graph alive.
    context->saved_data["d_hidden"] = pass.d_hidden;
    context->saved_data["d_weight"] = pass.d_weight;
    context->saved_data["type"] = static_cast<std::int64_t>(weight.scalar_type());
    const at::Tensor total = pass.ce + pass.z;
    context->mark_non_differentiable({pass.ce, pass.z});
    return {total, pass.ce, pass.z};
  }

  static ag::variable_list backward(ag::AutogradContext* context, ag::variable_list gradients) {
    KF_CHECK(context->saved_data.count("d_hidden") > 0, Code::other,
             "fused_linear_cross_entropy: its gradients are made once, and were taken by an earlier backward");
    at::Tensor d_hidden = context->saved_data["d_hidden"].toTensor();
    at::Tensor d_weight = context->saved_data["d_weight"].toTensor();
    const auto type = static_cast<at::ScalarType>(context->saved_data["type"].toInt());
    context->saved_data.clear();
    const at::Tensor& factor = gradients[0];
    if (d_hidden.defined()) {
      d_hidden.mul_(factor);
    }
    if (d_weight.defined()) {
      d_weight = d_weight.mul_(factor).to(type);
    }
    return {d_hidden, d_weight, {}, {}, {}, {}, {}, {}, {}};
  }
};

}  // namespace

LinearLoss fused_linear_loss(const at::Tensor& hidden, const OutputHead& head, const at::Tensor& labels, const LinearLossOptions& options) {
  if (!at::GradMode::is_enabled() || !(hidden.requires_grad() || head.weight.requires_grad())) {
    const Pass pass = run_chunks(hidden, head, labels, options, false, false);
    return {pass.ce + pass.z, pass.ce, pass.z};
  }
  const ag::variable_list out = FusedFunction::apply(hidden, head.weight, labels, head.scale, head.softcap,
                                                     static_cast<std::int64_t>(head.precision), options.ce, options.z, options.chunk);
  return {out[0], out[1], out[2]};
}

}  // namespace kf
