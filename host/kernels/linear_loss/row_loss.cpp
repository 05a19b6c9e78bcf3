#include "kernels/linear_loss/row_loss.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <vector>

#include "core/error.h"
#include "kernels/linear_loss/linear_loss.h"
#include "kernels/linear_loss/rows.h"
#include "kernels/simd/threads.h"

namespace kf {
namespace {

constexpr std::int64_t kGrain = 1 << 14;  // numbers: some 10 us

std::int64_t row_grain(std::int64_t vocabulary) { return std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, vocabulary)); }

LossRows rows_of(const at::Tensor& products, const at::Tensor& labels, const RowFactors& factors) {
  return {
      products.const_data_ptr(),         products.scalar_type() == at::kBFloat16, products.size(1), labels.const_data_ptr<std::int64_t>(),
      static_cast<float>(factors.scale), static_cast<float>(factors.softcap)};
}

void check_labels(const at::Tensor& labels, std::int64_t vocabulary) {
  const std::int64_t* const label = labels.const_data_ptr<std::int64_t>();
  const std::int64_t* const end = label + labels.numel();
  const std::int64_t* const wrong =
      std::find_if(label, end, [=](std::int64_t one) { return one >= vocabulary || (one < 0 && one != kIgnoredLabel); });
  KF_CHECK(wrong == end, Code::data, "a label is {}; allowed are tokens, 0 to {}, and {} for what does not count",
           wrong == end ? 0 : *wrong, vocabulary - 1, kIgnoredLabel);
}

}  // namespace

bool rows_take(const at::Tensor& products, const at::Tensor& labels) {
  const at::ScalarType type = products.scalar_type();
  return products.is_cpu() && products.dim() == 2 && products.size(1) > 0 && products.is_contiguous() &&
         (type == at::kFloat || type == at::kBFloat16) && labels.is_cpu() && labels.is_contiguous() && labels.scalar_type() == at::kLong;
}

RowLoss row_loss(const at::Tensor& products, const at::Tensor& labels, const RowFactors& factors, const at::Tensor& slopes) {
  const LossRows rows = rows_of(products, labels, factors);
  check_labels(labels, rows.vocabulary);
  const auto n = static_cast<std::size_t>(products.size(0));
  RowLoss out;
  out.lse = at::empty({products.size(0)}, at::kFloat);
  auto* const lse = out.lse.mutable_data_ptr<float>();
  void* const into = slopes.defined() ? slopes.mutable_data_ptr() : nullptr;
  std::vector<float> losses(n);
  const auto loss_rows = KF_SIMD_PICK(loss_rows);
  const auto loss_slopes = KF_SIMD_PICK(loss_slopes);
  simd::share(products.size(0), row_grain(rows.vocabulary), [&](std::int64_t first, std::int64_t end, int /*thread*/) {
    for (std::int64_t i = first; i < end; ++i) {  // one after the other: the row is still near
      loss_rows(rows, i, i + 1, lse, losses.data());
      if (into != nullptr) {
        loss_slopes(rows, i, i + 1, lse, static_cast<float>(factors.ce), static_cast<float>(factors.z), into);
      }
    }
  });
  double ce = 0, squares = 0;
  for (std::size_t i = 0; i < n; ++i) {
    ce += losses[i];
    squares += static_cast<double>(lse[i]) * lse[i];
  }
  out.ce = at::scalar_tensor(ce * factors.ce, at::kFloat);
  out.z = at::scalar_tensor(squares * factors.z, at::kFloat);
  return out;
}

at::Tensor row_slopes(const at::Tensor& products, const at::Tensor& labels, const at::Tensor& lse, const RowFactors& factors) {
  const LossRows rows = rows_of(products, labels, factors);
  at::Tensor out = at::empty_like(products);
  void* const into = out.mutable_data_ptr();
  const auto loss_slopes = KF_SIMD_PICK(loss_slopes);
  simd::share(products.size(0), row_grain(rows.vocabulary), [&](std::int64_t first, std::int64_t end, int /*thread*/) {
    loss_slopes(rows, first, end, lse.const_data_ptr<float>(), static_cast<float>(factors.ce), static_cast<float>(factors.z), into);
  });
  return out;
}

}  // namespace kf
