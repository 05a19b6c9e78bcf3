#include "model/moe/expert_exchange.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <numeric>

#include "parallel/graph.h"

namespace kf {
namespace {

/// (ranks, experts) to send and to get -> rows of each rank, on the host.
Splits splits_of(const at::Tensor& sent, const at::Tensor& come) {
  const at::Tensor rows = at::stack({sent.sum(1), come.sum(1)}).to(at::kCPU);
  const auto* const data = rows.const_data_ptr<std::int64_t>();
  const std::int64_t ranks = rows.size(1);
  return {{data, data + ranks}, {data + ranks, data + 2 * ranks}};
}

std::int64_t sum(const std::vector<std::int64_t>& rows) { return std::accumulate(rows.begin(), rows.end(), std::int64_t{0}); }

}  // namespace

ExpertExchange::ExpertExchange(const at::Tensor& counts, Group& ranks)
    : ranks_(ranks), rows_(agree(counts), counts.numel() / ranks.size()) {}

at::Tensor ExpertExchange::agree(const at::Tensor& counts) {
  const at::NoGradGuard no_grad;
  const std::int64_t own = counts.numel() / ranks_.size();
  const std::vector<std::int64_t> each(static_cast<std::size_t>(ranks_.size()), own);
  const at::Tensor come = ranks_.exchanged(counts.contiguous(), {each, each}).view({ranks_.size(), own});
  splits_ = splits_of(counts.view({ranks_.size(), own}), come);
  sent_ = sum(splits_.sent);
  const at::Tensor experts = at::arange(own, come.options()).repeat({ranks_.size()});  // (ranks x experts)
  return experts.repeat_interleave(come.flatten(), 0, sum(splits_.received)).unsqueeze(1);
}

at::Tensor ExpertExchange::there(const at::Tensor& x) const { return gather_rows(exchanged(x, splits_, ranks_), rows_); }

at::Tensor ExpertExchange::back(const at::Tensor& y) const {
  return exchanged(unsorted_rows(y, rows_), {splits_.received, splits_.sent}, ranks_);
}

}  // namespace kf
