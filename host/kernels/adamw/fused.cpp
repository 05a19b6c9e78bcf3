#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "kernels/adamw/adamw.h"
#include "kernels/adamw/blockwise.h"
#include "kernels/adamw/byte_map.h"
#include "kernels/adamw/rows.h"
#include "kernels/adamw/wide_lists.h"
#include "kernels/simd/lists.h"

namespace kf {
namespace {

bool reads(const at::Tensor& tensor) {
  return tensor.is_cpu() && (tensor.scalar_type() == at::kFloat || tensor.scalar_type() == at::kBFloat16);
}

bool fits(const at::Tensor& tensor) { return reads(tensor) && tensor.is_contiguous(); }

bool fits_as_moment(const at::Tensor& tensor, at::ScalarType bytes, at::ScalarType fp8) {
  return fits(tensor) || (tensor.is_cpu() && (tensor.scalar_type() == bytes || tensor.scalar_type() == fp8));
}

/// Whether rows_simd.cpp takes them.
bool by_rows(const AdamWLists& lists) {
  for (std::size_t i = 0; i < lists.weights.size(); ++i) {
    const at::Tensor& step = lists.steps[i];
    if (!fits(lists.weights[i]) || !reads(lists.gradients[i]) || !fits_as_moment(lists.m[i], at::kChar, at::kFloat8_e4m3fn) ||
        !fits_as_moment(lists.v[i], at::kByte, at::kFloat8_e5m2) || !step.is_cpu() || step.scalar_type() != at::kFloat) {
      return false;
    }
  }
  return true;
}

bool low(const at::Tensor& tensor) { return tensor.scalar_type() == at::kBFloat16; }

Stored stored_as(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kBFloat16: return Stored::bf16;
    case at::kFloat8_e4m3fn: return Stored::e4m3;
    case at::kFloat8_e5m2: return Stored::e5m2;
    default: return is_blockwise(tensor.scalar_type()) ? Stored::bytes : Stored::fp32;
  }
}

float number(const at::Tensor& scalar) { return scalar.defined() ? *scalar.const_data_ptr<float>() : 1; }

void* written(const at::Tensor& tensor) {
  tensor.unsafeGetTensorImpl()->bump_version();
  return tensor.mutable_data_ptr();
}

/// `gradient`: that of the weight, contiguous.
AdamWRow row_of(const AdamWLists& lists, std::size_t i, const at::Tensor& gradient, const AdamWNumbers& n) {
  AdamWRow row;
  row.weight = written(lists.weights[i]);
  row.gradient = gradient.const_data_ptr();
  row.m = written(lists.m[i]);
  row.v = written(lists.v[i]);
  row.numbers = lists.weights[i].numel();
  row.weight_as = stored_as(lists.weights[i]);
  row.gradient_as = stored_as(gradient);
  row.m_as = stored_as(lists.m[i]);
  row.v_as = stored_as(lists.v[i]);
  const double step = number(lists.steps[i]);
  const double corrected = 1 - std::pow(n.beta1, step);
  row.keep = static_cast<float>(1 - n.lr * n.weight_decay);
  row.of_m = static_cast<float>(n.nesterov ? n.lr * n.beta1 / (1 - std::pow(n.beta1, step + 1)) : n.lr / corrected);
  row.of_gradient = static_cast<float>(n.nesterov ? n.lr * (1 - n.beta1) / corrected : 0);
  row.of_v = static_cast<float>(1 / (1 - std::pow(n.beta2, step)));
  return row;
}

/// The value of a weight that its row writes itself.
bool beside(const AdamWLists& lists, std::size_t i) {
  const at::Tensor& value = lists.values[i];
  return value.defined() && fits(value) && low(value) && value.numel() == lists.weights[i].numel();
}

void adamw_by_rows(const AdamWLists& lists, const AdamWNumbers& n) {
  const AdamWRates rates{number(lists.factor),
                         static_cast<float>(1 - n.beta1),
                         static_cast<float>(n.beta2),
                         static_cast<float>(1 - n.beta2),
                         static_cast<float>(n.eps),
                         static_cast<float>(n.eps_root),
                         &byte_map(true),
                         &byte_map(false)};
  std::vector<at::Tensor> gradients;
  std::vector<AdamWRow> rows;
  simd::BlockList blocks;
  for (std::size_t i = 0; i < lists.weights.size(); ++i) {
    gradients.push_back(lists.gradients[i].contiguous());
    rows.push_back(row_of(lists, i, gradients.back(), n));
    if (!lists.values.empty() && beside(lists, i)) {
      rows.back().value = written(lists.values[i]);
    }
    blocks.add(rows.back().numbers, kAdamWBlock);
  }
  constexpr std::int64_t kGrain = 64;  // blocks: some 10 us
  const auto blocks_of = KF_SIMD_PICK(adamw_blocks);
  blocks.share(kGrain, [&](std::size_t i, std::int64_t first, std::int64_t end) { blocks_of(rows[i], rates, first, end); });
  for (std::size_t i = 0; i < lists.values.size(); ++i) {
    if (rows[i].value == nullptr && lists.values[i].defined()) {
      lists.values[i].copy_(lists.weights[i]);
    }
  }
}

}  // namespace

void fused_adamw(const AdamWLists& lists, const AdamWNumbers& n) {
  if (by_rows(lists)) {
    if (number(lists.ok) != 0) {
      adamw_by_rows(lists, n);
    }
    return;
  }
  if (n.eps_root > 0 || n.nesterov) {
    plain_adamw(lists, n);
    return;
  }
  const WideLists wide(lists);
  const AdamWLists l = wide.lists();
  const std::optional<at::Tensor> leave = l.ok.defined() ? std::optional(1 - l.ok) : std::nullopt;  // as gradients that overflow
  at::_fused_adamw_(l.weights, l.gradients, l.m, l.v, {}, l.steps, n.lr, n.beta1, n.beta2, n.weight_decay, n.eps,
                    /*amsgrad=*/false, /*maximize=*/false, /*grad_scale=*/{}, leave);
  wide.write_back();
}

}  // namespace kf
