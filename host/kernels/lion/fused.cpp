#include <ATen/ATen.h>

#include <vector>

#include "kernels/lion/lion.h"
#include "kernels/lion/rows.h"
#include "kernels/simd/lists.h"

namespace kf {
namespace {

bool low(const at::Tensor& tensor) { return tensor.scalar_type() == at::kBFloat16; }

bool reads(const at::Tensor& tensor) { return tensor.is_cpu() && (tensor.scalar_type() == at::kFloat || low(tensor)); }

/// Whether rows_simd.cpp takes them.
bool by_rows(const LionLists& lists) {
  for (std::size_t i = 0; i < lists.weights.size(); ++i) {
    const at::Tensor &weight = lists.weights[i], &m = lists.m[i];
    if (!reads(weight) || !weight.is_contiguous() || !reads(lists.gradients[i]) || !m.is_cpu() || m.scalar_type() != at::kFloat ||
        !m.is_contiguous()) {
      return false;
    }
  }
  return true;
}

void* written(const at::Tensor& tensor) {
  tensor.unsafeGetTensorImpl()->bump_version();
  return tensor.mutable_data_ptr();
}

/// The value of a weight that its row writes itself.
bool beside(const LionLists& lists, std::size_t i) {
  const at::Tensor& value = lists.values[i];
  return value.defined() && value.is_cpu() && low(value) && value.is_contiguous() && value.numel() == lists.weights[i].numel();
}

LionRates rates_of(const LionLists& lists, const LionNumbers& n) {
  LionRates rates;
  rates.factor = lists.factor.defined() ? *lists.factor.const_data_ptr<float>() : 1;
  rates.beta1 = static_cast<float>(n.beta1);
  rates.new1 = static_cast<float>(1 - n.beta1);
  rates.beta2 = static_cast<float>(n.beta2);
  rates.new2 = static_cast<float>(1 - n.beta2);
  rates.keep = static_cast<float>(1 - n.lr * n.weight_decay);
  rates.lr = static_cast<float>(n.lr);
  return rates;
}

}  // namespace

void fused_lion(const LionLists& lists, const LionNumbers& n) {
  if (!by_rows(lists)) {
    plain_lion(lists, n);
    return;
  }
  const LionRates rates = rates_of(lists, n);
  std::vector<at::Tensor> gradients;
  std::vector<LionRow> rows;
  simd::BlockList blocks;
  for (std::size_t i = 0; i < lists.weights.size(); ++i) {
    gradients.push_back(lists.gradients[i].contiguous());
    rows.push_back({written(lists.weights[i]), gradients.back().const_data_ptr(), static_cast<float*>(written(lists.m[i])), nullptr,
                    lists.weights[i].numel(), low(lists.weights[i]), low(gradients.back())});
    if (!lists.values.empty() && beside(lists, i)) {
      rows.back().value = written(lists.values[i]);
    }
    blocks.add(rows.back().numbers, kLionBlock);
  }
  constexpr std::int64_t kGrain = 64;  // blocks: some 10 us
  const auto blocks_of = KF_SIMD_PICK(lion_blocks);
  blocks.share(kGrain, [&](std::size_t i, std::int64_t first, std::int64_t end) { blocks_of(rows[i], rates, first, end); });
  for (std::size_t i = 0; i < lists.values.size(); ++i) {
    if (rows[i].value == nullptr && lists.values[i].defined()) {
      lists.values[i].copy_(lists.weights[i]);
    }
  }
}

}  // namespace kf
