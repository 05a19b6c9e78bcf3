#include "kernels/rms_norm/row_norm.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "kernels/rms_norm/rms_norm_rows.h"
#include "kernels/simd/tensor_rows.h"
#include "kernels/simd/threads.h"

namespace kf {
namespace {

constexpr std::int64_t kGrain = 32768;  // numbers that are worth a thread

std::int64_t grain(std::int64_t width) { return std::max<std::int64_t>(1, kGrain / width); }

/// The factor in fp32, one number after the other.
at::Tensor numbers_of(const at::Tensor& factor) { return factor.defined() ? factor.to(at::kFloat).contiguous() : factor; }

const float* data_of(const at::Tensor& numbers) { return numbers.defined() ? numbers.const_data_ptr<float>() : nullptr; }

simd::Rows rows_if(const at::Tensor& x) { return x.defined() ? *simd::rows_of(x) : simd::Rows(); }
at::Tensor in_rows_if(const at::Tensor& x) { return x.defined() ? simd::in_rows(x) : x; }

}  // namespace

at::Tensor sum_of_rows(const at::Tensor& sums) {
  at::Tensor out = at::empty({sums.size(1)}, sums.options());
  static const auto kernel = KF_SIMD_PICK(add_sums);
  simd::share(sums.size(1), grain(sums.size(0)), [&](std::int64_t first, std::int64_t end, int /*thread*/) {
    kernel(sums.const_data_ptr<float>(), sums.size(0), sums.size(1), out.mutable_data_ptr<float>(), first, end);
  });
  return out;
}

bool norms_by_rows(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& factor) {
  const auto narrow = [](const at::Tensor& t) { return t.scalar_type() == at::kFloat || t.scalar_type() == at::kBFloat16; };
  if (!simd::takes(x) || (factor.defined() && (!narrow(factor) || factor.dim() != 1 || factor.size(0) != x.size(-1)))) {
    return false;
  }
  return !branch.defined() || (simd::takes(branch) && branch.scalar_type() == x.scalar_type() && branch.sizes().equals(x.sizes()));
}

RowNorm row_norm(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& factor, double eps) {
  const at::Tensor from = simd::in_rows(x), other = in_rows_if(branch), numbers = numbers_of(factor);
  const std::int64_t rows = simd::row_count(x);
  RowNorm out{branch.defined() ? at::empty(x.sizes(), x.options()) : at::Tensor(), at::empty(x.sizes(), x.options()),
              at::empty({rows}, x.options().dtype(at::kFloat))};
  const simd::NormForward of{
      rows_if(from),    rows_if(other), rows_if(out.sum),        rows_if(out.norm), out.inverse.mutable_data_ptr<float>(),
      data_of(numbers), x.size(-1),     static_cast<float>(eps), simd::is_bf16(x)};
  static const auto kernel = KF_SIMD_PICK(norm_forward);
  simd::share(rows, grain(of.width), [&](std::int64_t first, std::int64_t end, int /*thread*/) { kernel(of, first, end); });
  return out;
}

RowNormGradients row_norm_gradients(const at::Tensor& h, const at::Tensor& gradient, const at::Tensor& beside, const at::Tensor& inverse,
                                    const at::Tensor& factor, bool wants_x, bool wants_factor) {
  const at::Tensor from = simd::in_rows(h), g = simd::in_rows(gradient), other = in_rows_if(beside), numbers = numbers_of(factor);
  const std::int64_t rows = simd::row_count(h), width = h.size(-1);
  const std::int64_t blocks = (rows + simd::kNormBlock - 1) / simd::kNormBlock;
  RowNormGradients out;
  out.x = wants_x ? at::empty(h.sizes(), h.options()) : at::Tensor();
  const at::Tensor sums = wants_factor ? at::empty({blocks, width}, h.options().dtype(at::kFloat)) : at::Tensor();
  const simd::NormBackward of{rows_if(from),
                              rows_if(g),
                              rows_if(other),
                              rows_if(out.x),
                              inverse.const_data_ptr<float>(),
                              data_of(numbers),
                              wants_factor ? sums.mutable_data_ptr<float>() : nullptr,
                              width,
                              rows,
                              simd::is_bf16(h)};
  static const auto kernel = KF_SIMD_PICK(norm_backward);
  simd::share(blocks, grain(width * simd::kNormBlock),
              [&](std::int64_t first, std::int64_t end, int /*thread*/) { kernel(of, first, end); });
  out.factor = wants_factor ? sum_of_rows(sums).to(factor.scalar_type()) : at::Tensor();
  return out;
}

}  // namespace kf
