#include "kernels/product/product.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/autograd/custom_function.h>

#include "kernels/product/put_off.h"
#include "kernels/product/small_product.h"

namespace kf {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

Products chosen;

/// a b^T by oneDNN, whose fp32 product LibTorch has behind this operator alone. Either may be a transposed view.
at::Tensor onednn_nt(const at::Tensor& a, const at::Tensor& b) {
  using Scalars = c10::List<std::optional<at::Scalar>>;
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("mkldnn::_linear_pointwise", "")
                             .typed<at::Tensor(const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&, c10::string_view,
                                               Scalars, std::optional<c10::string_view>)>();
  static const Scalars none;
  return op.call(a, b, std::nullopt, "none", none, "");
}

bool is_large(const at::Tensor& a, std::int64_t other) { return a.numel() * other >= kSmallestChosenProduct; }

bool takes_onednn(const at::Tensor& a) { return chosen.fp32_onednn && a.scalar_type() == at::kFloat && a.is_cpu(); }

/// Widening a weight costs its elements, so a few rows (generation) are not worth it.
constexpr std::int64_t kFewRows = 8;

bool is_widened(const at::Tensor& a, std::int64_t rows) {
  return chosen.bf16_widened && a.scalar_type() == at::kBFloat16 && a.is_cpu() && rows >= kFewRows;
}

bool is_plain(const at::Tensor& a) { return !takes_onednn(a) && !is_widened(a, a.size(0)); }

bool is_ours(const at::Tensor& a, const at::Tensor& b, ProductKind kind) { return chosen.fp32_small && takes_small_product(a, b, kind); }

/// As is_widened, of products that are small.
bool is_small_widened(const at::Tensor& a) {
  return chosen.bf16_small && a.scalar_type() == at::kBFloat16 && a.is_cpu() && a.size(0) >= kFewRows;
}

at::Tensor small(const at::Tensor& a, const at::Tensor& b, ProductKind kind) {
  if (is_small_widened(a)) {
    return small(a.to(at::kFloat), b.to(at::kFloat), kind).to(at::kBFloat16);
  }
  if (is_ours(a, b, kind)) {
    return small_product(a, b, kind);
  }
  return at::mm(kind == ProductKind::tn ? a.t() : a, kind == ProductKind::nt ? b.t() : b);
}

void small_out(at::Tensor& out, const at::Tensor& a, const at::Tensor& b, ProductKind kind) {
  if (is_small_widened(a)) {
    out.copy_(small(a, b, kind));
  } else if (is_ours(a, b, kind) && out.stride(1) == 1) {
    small_product_out(out, a, b, kind);
  } else {
    at::mm_out(out, kind == ProductKind::tn ? a.t() : a, kind == ProductKind::nt ? b.t() : b);
  }
}

struct LinearProduct : torch::autograd::Function<LinearProduct> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight) {
    context->save_for_backward({x, weight});
    return product_nt(x, weight);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1];
    at::Tensor for_x, for_weight;
    if (at::GradMode::is_enabled()) {  // a gradient of the gradient is asked for: operators that have one
      return {gradients[0].mm(weight), gradients[0].t().mm(x)};
    }
    if (context->needs_input_grad(0)) {
      for_x = product_nn(gradients[0], weight);
    }
    if (context->needs_input_grad(1)) {
      for_weight = product_tn(gradients[0], x);
    }
    return {for_x, for_weight};
  }
};

/// Of products that are not small.
bool is_own(const at::Tensor& a, const at::Tensor& b, ProductKind kind) {
  if (kind == ProductKind::tn) {
    constexpr std::int64_t kMostNumbers = std::int64_t{1} << 22;  // of a result whose blocks stay in the nearer caches
    return chosen.fp32_own_tn && a.size(1) * b.size(1) < kMostNumbers && takes_small_product(a, b, kind);
  }
  return chosen.fp32_own && a.numel() * b.size(kind == ProductKind::nt ? 0 : 1) <= kMostOwnProduct && takes_small_product(a, b, kind);
}

/// The same into `out`: whether they write there themselves.
bool is_own_into(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, ProductKind kind) {
  return out.stride(1) == 1 && is_own(a, b, kind);
}

/// Whether another kernel than at::linear's computes x W^T.
bool concerns(const at::Tensor& x, const at::Tensor& weight) {
  if (!x.is_cpu() || x.scalar_type() != weight.scalar_type()) {
    return false;
  }
  if (!is_large(x, weight.size(0))) {
    return x.scalar_type() == at::kFloat ? chosen.fp32_small : chosen.bf16_small && x.scalar_type() == at::kBFloat16;
  }
  return takes_onednn(x) || (chosen.fp32_own && x.scalar_type() == at::kFloat) || is_widened(x, x.numel() / x.size(-1));
}

}  // namespace

void set_products(const Products& products) { chosen = products; }
const Products& products() { return chosen; }

at::Tensor product_nt(const at::Tensor& a, const at::Tensor& b) {
  if (!is_large(a, b.size(0))) {
    return small(a, b, ProductKind::nt);
  }
  if (is_widened(a, a.size(0))) {
    return product_nt(a.to(at::kFloat), b.to(at::kFloat)).to(a.scalar_type());
  }
  if (is_own(a, b, ProductKind::nt)) {
    return small_product(a, b, ProductKind::nt);
  }
  return takes_onednn(a) ? onednn_nt(a, b) : at::mm(a, b.t());
}

at::Tensor product_nn(const at::Tensor& a, const at::Tensor& b) {
  if (!is_large(a, b.size(1))) {
    return small(a, b, ProductKind::nn);
  }
  if (is_widened(a, a.size(0))) {
    return product_nn(a.to(at::kFloat), b.to(at::kFloat)).to(a.scalar_type());
  }
  if (is_own(a, b, ProductKind::nn)) {
    return small_product(a, b, ProductKind::nn);
  }
  return takes_onednn(a) ? onednn_nt(a, b.t()) : at::mm(a, b);
}

at::Tensor product_tn(const at::Tensor& a, const at::Tensor& b) {
  if (!is_large(a, b.size(1))) {
    return small(a, b, ProductKind::tn);
  }
  if (is_widened(a, a.size(0))) {
    return product_tn(a.to(at::kFloat), b.to(at::kFloat)).to(a.scalar_type());
  }
  if (is_own(a, b, ProductKind::tn)) {
    return small_product(a, b, ProductKind::tn);
  }
  if (!takes_onednn(a)) {
    return at::mm(a.t(), b);
  }
  // oneDNN is faster where the wider operand lies in the weight's place. The copy gives the result the layout that it has otherwise.
  return a.size(1) <= b.size(1) ? onednn_nt(a.t(), b.t()) : onednn_nt(b.t(), a.t()).t().contiguous();
}

void product_nt_out(at::Tensor& out, const at::Tensor& a, const at::Tensor& b) {
  if (!is_large(a, b.size(0))) {
    small_out(out, a, b, ProductKind::nt);
  } else if (is_own_into(out, a, b, ProductKind::nt)) {
    small_product_out(out, a, b, ProductKind::nt);
  } else if (is_plain(a)) {
    at::mm_out(out, a, b.t());
  } else {
    out.copy_(product_nt(a, b));
  }
}

void product_nn_out(at::Tensor& out, const at::Tensor& a, const at::Tensor& b) {
  if (!is_large(a, b.size(1))) {
    small_out(out, a, b, ProductKind::nn);
  } else if (is_own_into(out, a, b, ProductKind::nn)) {
    small_product_out(out, a, b, ProductKind::nn);
  } else if (is_plain(a)) {
    at::mm_out(out, a, b);
  } else {
    out.copy_(product_nn(a, b));
  }
}

void product_tn_out(at::Tensor& out, const at::Tensor& a, const at::Tensor& b) {
  if (!is_large(a, b.size(1))) {
    small_out(out, a, b, ProductKind::tn);
  } else if (is_own_into(out, a, b, ProductKind::tn)) {
    small_product_out(out, a, b, ProductKind::tn);
  } else if (is_plain(a)) {
    at::mm_out(out, a.t(), b);
  } else {
    out.copy_(product_tn(a, b));
  }
}

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  if (const at::Tensor y = PutOffProducts::product(x, weight); y.defined()) {
    return bias.defined() ? y + bias : y;
  }
  if (!concerns(x, weight)) {
    return bias.defined() ? at::linear(x, weight, bias) : at::linear(x, weight);
  }
  std::vector<std::int64_t> shape = x.sizes().vec();
  shape.back() = weight.size(0);
  const at::Tensor y = LinearProduct::apply(x.reshape({-1, x.size(-1)}), weight).view(shape);
  return bias.defined() ? y + bias : y;
}

}  // namespace kf
