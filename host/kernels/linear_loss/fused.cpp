#include <ATen/ATen.h>

#include "kernels/linear_loss/chunks.h"
#include "kernels/linear_loss/linear_loss.h"

namespace kf {
namespace {

ChunkLoss evaluate_chunk(const at::Tensor& hidden, const OutputHead& head, const at::Tensor& labels, const LinearLossOptions& options,
                         bool gradients) {
  const ChunkLogits chunk = chunk_logits(hidden, head, gradients);
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

}  // namespace

LinearLoss fused_linear_loss(const at::Tensor& hidden, const OutputHead& head, const at::Tensor& labels, const LinearLossOptions& options) {
  return linear_loss_by_chunks(hidden, head, labels, options.chunk,
                               [&options](const at::Tensor& some, const OutputHead& matrix, const at::Tensor& own, bool gradients) {
                                 return evaluate_chunk(some, matrix, own, options, gradients);
                               });
}

}  // namespace kf
