#include "kernels/product/small_product.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <algorithm>

#include "kernels/product/small.h"
#include "kernels/simd/threads.h"

namespace kf {
namespace {

/// With a turned b, this many rows are sums along the rows of both; more are worth turning b for.
constexpr std::int64_t kFewRows = 4;

bool rows_lie(const at::Tensor& x) {
  return x.is_cpu() && x.scalar_type() == at::kFloat && x.layout() == at::kStrided && x.dim() == 2 && x.stride(1) == 1 &&
         x.stride(0) >= x.size(1) && !x.is_neg();
}

simd::SmallProduct describe(const at::Tensor& a, const at::Tensor& b, ProductKind kind) {
  simd::SmallProduct p;
  p.a = a.const_data_ptr<float>();
  p.b = b.const_data_ptr<float>();
  p.a_stride = a.stride(0);
  p.b_stride = b.stride(0);
  p.a_turned = kind == ProductKind::tn;
  p.b_turned = kind == ProductKind::nt;
  p.rows = a.size(p.a_turned ? 1 : 0);
  p.sum = a.size(p.a_turned ? 0 : 1);
  p.columns = b.size(p.b_turned ? 0 : 1);
  return p;
}

simd::SmallProduct rows_of(simd::SmallProduct p, std::int64_t first, std::int64_t end) {
  p.a += first * (p.a_turned ? 1 : p.a_stride);
  p.c += first * p.c_stride;
  p.rows = end - first;
  return p;
}

simd::SmallProduct columns_of(simd::SmallProduct p, std::int64_t first, std::int64_t end) {
  p.b += first * (p.b_turned ? p.b_stride : 1);
  p.c += first;
  p.columns = end - first;
  return p;
}

void compute(const simd::SmallProduct& p) {
  constexpr std::int64_t kGrain = std::int64_t{1} << 20;  // multiplications of one thread: about 20 us
  static const auto many = KF_SIMD_PICK(small_product);
  static const auto few = KF_SIMD_PICK(few_rows_product);
  const auto grain = [&](std::int64_t each) { return std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, each * p.sum)); };
  if (p.b_turned && p.rows <= kFewRows) {
    simd::share(p.columns, grain(p.rows), [&](std::int64_t first, std::int64_t end, int /*thread*/) { few(columns_of(p, first, end)); });
  } else {
    simd::share(p.rows, grain(p.columns), [&](std::int64_t first, std::int64_t end, int /*thread*/) { many(rows_of(p, first, end)); });
  }
}

at::Tensor compute_new(const at::Tensor& a, const at::Tensor& b, std::int64_t kind) {
  simd::SmallProduct p = describe(a, b, static_cast<ProductKind>(kind));
  at::Tensor out = at::empty({p.rows, p.columns}, a.options().requires_grad(false));
  p.c = out.mutable_data_ptr<float>();
  p.c_stride = p.columns;
  compute(p);
  return out;
}

}  // namespace

bool takes_small_product(const at::Tensor& a, const at::Tensor& b, ProductKind kind) {
  // A few rows of a b are sums of b's rows, for which at::mm is as fast.
  return rows_lie(a) && rows_lie(b) && (kind != ProductKind::nn || a.size(0) >= kFewRows);
}

at::Tensor small_product(const at::Tensor& a, const at::Tensor& b, ProductKind kind) {
  static const auto op = [] {
    auto* const library = new torch::Library(torch::Library::FRAGMENT, "kf", std::nullopt, __FILE__, __LINE__);  // for good
    library->def("product(Tensor a, Tensor b, int kind) -> Tensor");
    library->impl("product", torch::dispatch(c10::DispatchKey::CPU, TORCH_FN(compute_new)));
    return c10::Dispatcher::singleton().findSchemaOrThrow("kf::product", "").typed<decltype(compute_new)>();
  }();
  const at::AutoDispatchBelowADInplaceOrView below;
  return op.call(a, b, static_cast<std::int64_t>(kind));
}

void small_product_out(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, ProductKind kind) {
  simd::SmallProduct p = describe(a, b, kind);
  p.c = out.mutable_data_ptr<float>();
  p.c_stride = out.stride(0);
  compute(p);
}

}  // namespace kf
