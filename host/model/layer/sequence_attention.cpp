#include "model/layer/sequence_attention.h"

#include <ATen/ATen.h>

#include <limits>
#include <vector>

#include "model/layer/largest_scores.h"

namespace kf {
namespace {

/// (B or 1, H, T, S): slope times the distance of these positions, which is below 0 for earlier keys.
at::Tensor alibi_penalty(const at::Tensor& slopes, const Span& queries, const Span& keys) {
  const at::Tensor query = at::arange(queries.begin, queries.end(), slopes.options()).unsqueeze(1);  // (T, 1)
  const at::Tensor distance = at::arange(keys.begin, keys.end(), slopes.options()) - query;          // (T, S)
  return (distance.unsqueeze(0) * slopes.view({-1, 1, 1})).unsqueeze(0);
}

/// All pieces at once, so that dropout draws once.
at::Tensor attend_all_dropping(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Visibility& visible,
                               const SequenceScores& scores) {
  AttentionInput in{q, k, v, visible.mask(scores.reach), false, {}, scores.sinks, scores.drop, nullptr};
  if (scores.slopes.defined()) {
    std::vector<at::Tensor> rows;
    for (const Span& piece : visible.part()->pieces()) {
      rows.push_back(alibi_penalty(scores.slopes, piece, {0, k.size(2)}));
    }
    in.bias = at::cat(rows, 2);
  }
  return scores.kernels->attention(in, scores.rules);
}

}  // namespace

AttentionInput block_input(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Sight& sight, const SequenceScores& scores,
                           const Span& queries, const Span& keys) {
  AttentionInput in{q, k, v, {}, sight.kind == Sight::Kind::triangle, {}, {}, nullptr, sight.ranges};
  if (!scores.slopes.defined()) {
    return in;
  }
  in.mask = in.seen();
  if (in.causal) {
    in.mask = at::ones({queries.size, keys.size}, q.options().dtype(at::kBool)).tril();
  }
  in.bias = alibi_penalty(scores.slopes, queries, keys);
  if (in.mask.defined()) {
    in.bias = in.bias.masked_fill(in.mask.logical_not(), -std::numeric_limits<double>::infinity());
  }
  return in;
}

at::Tensor attend_all(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Visibility& visible,
                      const SequenceScores& scores) {
  if (scores.drop) {
    return attend_all_dropping(q, k, v, visible, scores);
  }
  std::vector<at::Tensor> out;
  std::int64_t row = 0;
  for (const Span& piece : visible.part()->pieces()) {
    const Span keys = Visibility::seen_keys(scores.reach, piece);
    AttentionInput in = block_input(q.narrow(2, row, piece.size), k.narrow(2, keys.begin, keys.size), v.narrow(2, keys.begin, keys.size),
                                    visible.between(scores.reach, piece, keys), scores, piece, keys);
    in.sinks = scores.sinks;
    out.push_back(scores.kernels->attention(in, scores.rules));
    row += piece.size;
  }
  return at::cat(out, 2);
}

at::Tensor largest_of_all(const at::Tensor& q, const at::Tensor& k, const Visibility& visible, const SequenceScores& scores) {
  at::Tensor largest;
  std::int64_t row = 0;
  for (const Span& piece : visible.part()->pieces()) {
    const Span keys = Visibility::seen_keys(scores.reach, piece);
    const Sight sight = visible.between(scores.reach, piece, keys);
    const at::Tensor own =
        largest_scores(q.narrow(2, row, piece.size).contiguous(), k.narrow(2, keys.begin, keys.size), scores.rules.scale,
                       sight.ranges != nullptr ? sight.ranges->mask() : at::Tensor(), sight.kind == Sight::Kind::triangle);
    largest = largest.defined() ? at::maximum(largest, own) : own;
    row += piece.size;
  }
  return largest;
}

}  // namespace kf
