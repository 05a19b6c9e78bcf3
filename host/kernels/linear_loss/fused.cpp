#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include "kernels/linear_loss/chunks.h"
#include "kernels/linear_loss/linear_loss.h"
#include "kernels/linear_loss/row_loss.h"

namespace kf {
namespace {

namespace ag = torch::autograd;

/// By rows_simd.cpp, where it takes the products: the gradient goes where they lie.
ChunkLoss evaluate_rows(const at::Tensor& products, const OutputHead& head, const at::Tensor& labels, const LinearLossOptions& options,
                        bool gradients) {
  const RowLoss loss = row_loss(products, labels, {head.scale, head.softcap, options.ce, options.z}, gradients ? products : at::Tensor());
  return {loss.ce, loss.z, gradients ? products : at::Tensor()};
}

/// By operators.
ChunkLoss evaluate_logits(const at::Tensor& products, const OutputHead& head, const at::Tensor& labels, const LinearLossOptions& options,
                          bool gradients) {
  const ChunkLogits chunk = chunk_logits(products, head, gradients);
  const at::Tensor& logits = chunk.logits;
  const at::Tensor lse = logits.logsumexp(-1);  // (n)
  const at::Tensor index = labels.clamp_min(0).unsqueeze(1);
  const at::Tensor picked = logits.gather(1, index).squeeze(1);
  const at::Tensor weight = labels.ne(kIgnoredLabel).to(wide(lse).scalar_type()) * options.ce;  // (n)
  ChunkLoss out;
  out.ce = (wide(lse - picked) * weight).sum();
  out.z = wide(lse).square().sum() * options.z;
  if (gradients) {  // d ce / d logits = softmax - onehot, d lse^2 / d logits = 2 lse softmax
    const at::Tensor d = at::exp(logits - lse.unsqueeze(1)).mul_((weight + lse * (2 * options.z)).unsqueeze(1));
    d.scatter_add_(1, index, -weight.to(d.scalar_type()).unsqueeze(1));
    out.d_product = chunk.back(d, head.scale);
  }
  return out;
}

ChunkLoss evaluate_chunk(const at::Tensor& hidden, const OutputHead& head, const at::Tensor& labels, const LinearLossOptions& options,
                         bool gradients) {
  const at::Tensor products = head_product(hidden, head);
  const bool rounds = head.precision == OutputHead::Precision::compute && c10::isReducedFloatingType(products.scalar_type());
  return !rounds && rows_take(products, labels) ? evaluate_rows(products, head, labels, options, gradients)
                                                : evaluate_logits(products, head, labels, options, gradients);
}

struct RowCrossEntropy : ag::Function<RowCrossEntropy> {
  static at::Tensor forward(ag::AutogradContext* context, const at::Tensor& logits, const at::Tensor& labels) {
    const RowLoss loss = row_loss(logits, labels, {});
    context->save_for_backward({logits, labels, loss.lse});
    return loss.ce;
  }

  static ag::variable_list backward(ag::AutogradContext* context, ag::variable_list gradients) {
    const ag::variable_list saved = context->get_saved_variables();
    const at::Tensor &logits = saved[0], &labels = saved[1], &lse = saved[2];
    if (at::GradMode::is_enabled()) {  // to be differentiated again
      const at::Tensor counts = labels.ne(kIgnoredLabel).to(at::kFloat).unsqueeze(1);
      const at::Tensor p = wide(logits).softmax(1);
      const at::Tensor hits = at::zeros_like(p).scatter_(1, labels.clamp_min(0).unsqueeze(1), 1);
      return {((p - hits) * counts * gradients[0]).to(logits.scalar_type()), {}};
    }
    return {row_slopes(logits, labels, lse, {1, 0, *gradients[0].to(at::kFloat).const_data_ptr<float>(), 0}), {}};
  }
};

}  // namespace

LinearLoss fused_linear_loss(const at::Tensor& hidden, const OutputHead& head, const at::Tensor& labels, const LinearLossOptions& options) {
  return linear_loss_by_chunks(hidden, head, labels, options.chunk,
                               [&options](const at::Tensor& some, const OutputHead& matrix, const at::Tensor& own, bool gradients) {
                                 return evaluate_chunk(some, matrix, own, options, gradients);
                               });
}

at::Tensor fused_cross_entropy(const at::Tensor& logits, const at::Tensor& labels) {
  return rows_take(logits, labels) ? RowCrossEntropy::apply(logits, labels) : plain_cross_entropy(logits, labels);
}

}  // namespace kf
