#include "train/step/divided_loss.h"

#include <ATen/ATen.h>

#include "kernels/linear_loss/chunks.h"
#include "parallel/graph.h"

namespace kf {
namespace {

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
  at::Tensor largest = logits.detach().amax(-1, /*keepdim=*/true).contiguous();
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

/// As in kernels/linear_loss/fused.cpp, of which this is the divided form.
ChunkLoss evaluate_chunk(const at::Tensor& hidden, const OutputHead& head, const at::Tensor& labels, const LinearLossOptions& options,
                         bool gradients, Group& ranks) {
  const ChunkLogits chunk = chunk_logits(head_product(hidden, head), head, gradients);
  const at::Tensor& logits = chunk.logits;  // (n, V / size)
  const OwnLabels own = own_labels(labels, logits.size(1), ranks);
  const at::Tensor top = largest_of(logits, ranks);
  const at::Tensor sums =
      at::stack({wide(at::exp(logits - top).sum(-1)), wide(logits.gather(1, own.index).squeeze(1)).masked_fill(own.here.logical_not(), 0)});
  ranks.sum(sums);
  const at::Tensor lse = sums[0].log() + wide(top).squeeze(1);  // (n)
  const at::Tensor weight = own.counts.to(lse.scalar_type()) * options.ce;
  ChunkLoss out;
  out.ce = ((lse - sums[1]) * weight).sum();
  out.z = lse.square().sum() * options.z;
  if (gradients) {  // d ce / d logits = softmax - onehot, d lse^2 / d logits = 2 lse softmax
    const at::Tensor d = at::exp(logits - lse.unsqueeze(1).to(logits.scalar_type())).mul_((weight + lse * (2 * options.z)).unsqueeze(1));
    d.scatter_add_(1, own.index, -(weight * own.here).to(d.scalar_type()).unsqueeze(1));
    out.d_product = chunk.back(d, head.scale);
  }
  return out;
}

}  // namespace

LinearLoss divided_linear_loss(const at::Tensor& hidden, const OutputHead& head, const at::Tensor& labels, const LinearLossOptions& options,
                               bool fused, Group& ranks) {
  if (!fused) {
    return plain(hidden, head, labels, options, ranks);
  }
  return linear_loss_by_chunks(hidden, head, labels, options.chunk,
                               [&](const at::Tensor& some, const OutputHead& matrix, const at::Tensor& own, bool gradients) {
                                 return evaluate_chunk(some, matrix, own, options, gradients, ranks);
                               });
}

}  // namespace kf
