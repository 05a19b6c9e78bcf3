#include <ATen/ATen.h>

#include "kernels/muon/muon.h"
#include "kernels/muon/rows.h"
#include "kernels/simd/tensor_rows.h"
#include "kernels/simd/threads.h"

namespace kf {
namespace {

constexpr std::int64_t kGrain = 16384;  // numbers that are worth a thread

bool fits(const at::Tensor& x) { return simd::takes(x) && x.is_contiguous(); }
bool is_fp32(const at::Tensor& x) { return fits(x) && x.scalar_type() == at::kFloat; }

void* written(const at::Tensor& tensor) {
  tensor.unsafeGetTensorImpl()->bump_version();
  return tensor.mutable_data_ptr();
}

}  // namespace

at::Tensor fused_muon_momentum(const MuonMomentum& in) {
  if (!simd::takes(in.gradient) || !is_fp32(in.momentum)) {
    return plain_muon_momentum(in);
  }
  const at::Tensor gradient = in.gradient.contiguous();
  const at::Tensor ahead = in.nesterov ? at::empty(in.momentum.sizes(), in.momentum.options()) : at::Tensor();
  const simd::MomentumRow row{gradient.const_data_ptr(),
                              static_cast<float*>(written(in.momentum)),
                              in.nesterov ? ahead.mutable_data_ptr<float>() : nullptr,
                              in.factor.defined() ? *in.factor.const_data_ptr<float>() : 1,
                              static_cast<float>(in.beta),
                              simd::is_bf16(gradient)};
  static const auto kernel = KF_SIMD_PICK(muon_momentum);
  simd::share(gradient.numel(), kGrain, [&](std::int64_t first, std::int64_t end, int /*thread*/) { kernel(row, first, end); });
  return in.nesterov ? ahead : in.momentum;
}

void fused_muon_move(const MuonMove& in) {
  const bool beside = in.value.defined() && fits(in.value) && simd::is_bf16(in.value);
  if (!fits(in.weight) || !simd::takes(in.direction) || in.direction.scalar_type() != at::kFloat || (in.value.defined() && !beside)) {
    plain_muon_move(in);
    return;
  }
  const at::Tensor direction = in.direction.contiguous();
  const simd::MoveRow row{written(in.weight),          direction.const_data_ptr<float>(), beside ? written(in.value) : nullptr,
                          static_cast<float>(in.keep), static_cast<float>(in.rate),       simd::is_bf16(in.weight)};
  static const auto kernel = KF_SIMD_PICK(muon_move);
  simd::share(in.weight.numel(), kGrain, [&](std::int64_t first, std::int64_t end, int /*thread*/) { kernel(row, first, end); });
}

}  // namespace kf
