#include "model/model.h"

#include <ATen/ATen.h>

#include "core/error.h"
#include "kernels/product.h"

namespace kf {

OutputHead::Precision logits_precision(const std::string& name) {
  return name == "compute" ? OutputHead::Precision::compute : name == "fp32" ? OutputHead::Precision::fp32 : OutputHead::Precision::cast;
}

at::Tensor head_product(const at::Tensor& hidden, const OutputHead& head) {
  const bool widens = head.precision == OutputHead::Precision::fp32 && c10::isReducedFloatingType(hidden.scalar_type());
  return widens ? kf::linear(hidden.to(at::kFloat), head.weight.to(at::kFloat)) : kf::linear(hidden, head.weight);
}

at::Tensor Model::hidden(const at::Tensor& /*tokens*/, ForwardContext& /*context*/) {
  fail(Code::config, "this model gives no hidden state away: train.loss_fn must take logits, as \"cross_entropy\" does");
}

void Model::scale_queries(std::int64_t /*layer*/, const at::Tensor& /*factors*/) {
  fail(Code::config, "this model's query weights cannot be scaled: optimizer.qk_clip needs model_type = \"transformer\"");
}

}  // namespace kf
