#include "parallel/sequence_part.h"

#include <ATen/ATen.h>

#include <utility>

#include "parallel/graph.h"
#include "parallel/group.h"

namespace kf {
namespace {

at::Tensor indices_of(const std::vector<Span>& pieces) {
  std::vector<at::Tensor> out;
  for (const Span& piece : pieces) {
    out.push_back(at::arange(piece.begin, piece.end(), at::kLong));
  }
  return at::cat(out);
}

}  // namespace

const std::vector<Span>& SequencePart::pieces() const { return cut.pieces(ranks->rank()); }

std::shared_ptr<const SequencePart> part_of_sequence(Group& ranks, SequenceOrder order, const at::Tensor& tokens, const at::Tensor& labels,
                                                     const at::Tensor& doc_ids) {
  SequenceCut cut(tokens.size(1), ranks.size(), order);
  std::vector<at::Tensor> by_rank;
  for (std::int64_t rank = 0; rank < ranks.size(); ++rank) {
    by_rank.push_back(indices_of(cut.pieces(rank)));
  }
  const at::Tensor positions = by_rank[static_cast<std::size_t>(ranks.rank())].to(tokens.device());
  const at::Tensor index = at::arange(cut.length(), at::kLong);
  const at::Tensor places = at::empty_like(index).index_copy_(0, at::cat(by_rank), index).to(tokens.device());
  return std::make_shared<const SequencePart>(SequencePart{&ranks, std::move(cut), positions, places, tokens, labels, doc_ids});
}

at::Tensor own_positions(const at::Tensor& whole, std::int64_t dim, const SequencePart& part) {
  return whole.defined() ? whole.index_select(dim, part.positions) : at::Tensor();
}

at::Tensor all_positions(const at::Tensor& own, std::int64_t dim, const SequencePart& part) {
  return gathered(own, dim, part.cut.rows(), *part.ranks).index_select(dim, part.places);
}

}  // namespace kf
