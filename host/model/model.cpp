#include "model/model.h"

#include "core/error.h"

namespace kf {

OutputHead::Precision logits_precision(const std::string& name) {
  return name == "compute" ? OutputHead::Precision::compute : name == "fp32" ? OutputHead::Precision::fp32 : OutputHead::Precision::cast;
}

at::Tensor Model::hidden(const at::Tensor& /*tokens*/, ForwardContext& /*context*/) {
  fail(Code::config, "this model gives no hidden state away: train.loss_fn must take logits, as \"cross_entropy\" does");
}

void Model::scale_queries(std::int64_t /*layer*/, const at::Tensor& /*factors*/) {
  fail(Code::config, "this model's query weights cannot be scaled: optimizer.qk_clip needs model_type = \"transformer\"");
}

}  // namespace kf
