#include "train/step/source_losses.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "parallel/group.h"

namespace kf {

at::Tensor plain_ce_sum(const at::Tensor& logits, const at::Tensor& labels) {
  const at::NoGradGuard no_grad;
  return at::cross_entropy_loss(logits.detach().to(at::kFloat), labels, {}, at::Reduction::Sum, kIgnore);
}

void SourceLosses::add(const Batch& batch, const std::function<at::Tensor(std::int64_t row, const at::Tensor& labels)>& ce_of) {
  const at::NoGradGuard no_grad;
  for (std::size_t row = 0; row < batch.sources.size(); ++row) {
    const at::Tensor labels = batch.labels[static_cast<std::int64_t>(row)];
    const auto source = static_cast<std::size_t>(batch.sources[row]);
    rows_.push_back({source, ce_of(static_cast<std::int64_t>(row), labels).detach().to(at::kFloat), labels.ne(kIgnore).sum()});
    sums_.at(source).tokens += labels.numel();
  }
}

std::vector<SourceLoss> SourceLosses::read(Group& data, Group& stages) {
  if (!rows_.empty()) {
    std::vector<at::Tensor> numbers;
    for (const Row& row : rows_) {
      numbers.push_back(row.ce.to(at::kDouble));
      numbers.push_back(row.counted.to(at::kDouble));
    }
    const at::Tensor read = at::stack(numbers).to(at::kCPU);
    const double* value = read.const_data_ptr<double>();
    for (const Row& row : rows_) {
      sums_[row.source].ce += *value++;
      sums_[row.source].counted += static_cast<std::int64_t>(*value++);
    }
  }
  rows_.clear();
  for (Group* const ranks : {&data, &stages}) {
    add_ranks(*ranks);
  }
  return sums_;
}

void SourceLosses::add_ranks(Group& ranks) {
  if (ranks.size() == 1 || sums_.empty()) {
    return;
  }
  const at::Tensor all = at::empty({static_cast<std::int64_t>(sums_.size()), 3}, at::kDouble);  // counts are exact below 2^53
  auto* number = all.mutable_data_ptr<double>();
  for (const SourceLoss& sum : sums_) {
    *number++ = sum.ce;
    *number++ = static_cast<double>(sum.counted);
    *number++ = static_cast<double>(sum.tokens);
  }
  ranks.sum(all);
  number = all.mutable_data_ptr<double>();
  for (SourceLoss& sum : sums_) {
    sum.ce = *number++;
    sum.counted = static_cast<std::int64_t>(*number++);
    sum.tokens = static_cast<std::int64_t>(*number++);
  }
}

}  // namespace kf
