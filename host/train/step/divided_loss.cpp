#include "train/step/divided_loss.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "core/error.h"
#include "kernels/product/product.h"
#include "parallel/graph.h"

namespace kf {
namespace {

namespace ag = torch::autograd;

at::Tensor wide(const at::Tensor& x) { return x.scalar_type() == at::kDouble ? x : x.to(at::kFloat); }

/// Labels among the rows of one rank.
struct OwnLabels {
  at::Tensor index;   // (n, 1): where the label is, 0 where it is another rank's
  at::Tensor here;    // (n) bool
  at::Tensor counts;  // (n) bool: whether the position counts at all
};

OwnLabels own_labels(const at::Tensor& labels, std::int64_t rows, const Group& ranks) {
  const at::Tensor own = labels - ranks.rank() * rows;
  const at::Tensor counts = labels.ne(kIgnoredLabel);
  const at::Tensor here = own.ge(0).logical_and_(own.lt(rows)).logical_and_(counts);
  return {own.masked_fill(here.logical_not(), 0).unsqueeze(1), here, counts};
}

/// The largest of each position over all ranks, (n, 1), without a gradient.
at::Tensor largest_of(const at::Tensor& logits, Group& ranks) {
  const at::Tensor largest = logits.detach().amax(-1, /*keepdim=*/true).contiguous();
  ranks.largest(largest);
  return largest;
}

at::Tensor logits_of(const at::Tensor& product, const OutputHead& head) {
  const bool low = head.precision == OutputHead::Precision::compute;
  return shape_logits(low ? product : wide(product), head);
}

LinearLoss plain(const at::Tensor& hidden, const OutputHead& head, const at::Tensor& labels, const LinearLossOptions& options,
                 Group& ranks) {
  const at::Tensor logits = logits_of(head_product(hidden, head), head);  // (n, V / size)
  const OwnLabels own = own_labels(labels, logits.size(1), ranks);
  const at::Tensor top = largest_of(logits, ranks);
  const at::Tensor sum = summed(wide(at::exp(logits - top).sum(-1)), ranks);
  const at::Tensor lse = sum.log() + wide(top).squeeze(1);
  const at::Tensor picked = summed(wide(logits.gather(1, own.index).squeeze(1)).masked_fill(own.here.logical_not(), 0), ranks);
  const at::Tensor ce = (lse - picked).masked_fill(own.counts.logical_not(), 0).sum() * options.ce;
  const at::Tensor z = lse.square().sum() * options.z;
  return {ce + z, ce.detach(), z.detach()};
}

struct Pass {
  at::Tensor ce, z, d_hidden, d_weight;
};

/// As in kernels/linear_loss/fused.cpp, of which this is the divided form.
struct Chunk {
  at::Tensor ce, z;
  at::Tensor d_raw;  // (n, V / size), only with gradients
};

Chunk evaluate(const at::Tensor& hidden, const OutputHead& head, const at::Tensor& labels, const LinearLossOptions& options, bool gradients,
               Group& ranks) {
  const at::Tensor product = head_product(hidden, head);
  const at::Tensor raw = (head.precision == OutputHead::Precision::compute ? product : wide(product)) * head.scale;
  at::Tensor logits = raw, slope;
  if (head.softcap > 0) {
    const at::Tensor bent = at::tanh(raw / head.softcap);
    logits = bent * head.softcap;
    slope = gradients ? 1 - bent * bent : at::Tensor();
  }
  const OwnLabels own = own_labels(labels, logits.size(1), ranks);
  const at::Tensor top = largest_of(logits, ranks);
  const at::Tensor sums =
      at::stack({wide(at::exp(logits - top).sum(-1)), wide(logits.gather(1, own.index).squeeze(1)).masked_fill(own.here.logical_not(), 0)});
  ranks.sum(sums);
  const at::Tensor lse = sums[0].log() + wide(top).squeeze(1);  // (n)
  const at::Tensor weight = own.counts.to(lse.scalar_type()) * options.ce;
  Chunk out;
  out.ce = ((lse - sums[1]) * weight).sum();
  out.z = lse.square().sum() * options.z;
  if (gradients) {  // d ce / d logits = softmax - onehot, d lse^2 / d logits = 2 lse softmax
    at::Tensor d = at::exp(logits - lse.unsqueeze(1).to(logits.scalar_type())).mul_((weight + lse * (2 * options.z)).unsqueeze(1));
    d.scatter_add_(1, own.index, -(weight * own.here).to(d.scalar_type()).unsqueeze(1));
    if (slope.defined()) {
      d.mul_(slope);
    }
    out.d_raw = d.mul_(head.scale).to(product.scalar_type());
  }
  return out;
}

Pass run_chunks(const at::Tensor& hidden, const OutputHead& head, const at::Tensor& labels, const LinearLossOptions& options,
                bool for_hidden, bool for_weight, Group& ranks) {
  const at::TensorOptions like = wide(hidden.narrow(0, 0, 0)).options().requires_grad(false);
  Pass out{at::zeros({}, like), at::zeros({}, like), {}, {}};
  out.d_hidden = for_hidden ? at::empty(hidden.sizes(), hidden.options().requires_grad(false)) : at::Tensor();
  out.d_weight = for_weight ? at::zeros(head.weight.sizes(), like) : at::Tensor();
  const bool widens = head.precision == OutputHead::Precision::fp32;
  const at::Tensor matrix = widens ? wide(head.weight) : head.weight;
  for (std::int64_t first = 0; first < hidden.size(0); first += options.chunk) {
    const std::int64_t n = std::min(options.chunk, hidden.size(0) - first);
    const at::Tensor h = hidden.narrow(0, first, n);
    const Chunk piece = evaluate(h, head, labels.narrow(0, first, n), options, for_hidden || for_weight, ranks);
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
                                   const at::Tensor& labels, const OutputHead& head, const LinearLossOptions& options, Group* ranks) {
    OutputHead plain = head;
    plain.weight = weight.detach();
    const Pass pass = run_chunks(hidden.detach(), plain, labels, options, hidden.requires_grad(), weight.requires_grad(), *ranks);
    context->saved_data["d_hidden"] = pass.d_hidden;  // as in the undivided kernel
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
    if (d_hidden.defined()) {
      d_hidden.mul_(gradients[0]);
    }
    if (d_weight.defined()) {
      d_weight = d_weight.mul_(gradients[0]).to(type);
    }
    return {d_hidden, d_weight, {}, {}, {}, {}};
  }
};

}  // namespace

LinearLoss divided_linear_loss(const at::Tensor& hidden, const OutputHead& head, const at::Tensor& labels, const LinearLossOptions& options,
                               bool fused, Group& ranks) {
  if (!fused) {
    return plain(hidden, head, labels, options, ranks);
  }
  if (!at::GradMode::is_enabled() || !(hidden.requires_grad() || head.weight.requires_grad())) {
    const Pass pass = run_chunks(hidden, head, labels, options, false, false, ranks);
    return {pass.ce + pass.z, pass.ce, pass.z};
  }
  const ag::variable_list out = FusedFunction::apply(hidden, head.weight, labels, head, options, &ranks);
  return {out[0], out[1], out[2]};
}

}  // namespace kf
