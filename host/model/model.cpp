#include "model/model.h"

#include "core/error.h"

namespace kf {

at::Tensor Model::hidden(const at::Tensor& /*tokens*/, ForwardContext& /*context*/) {
  fail(Code::config, "this model gives no hidden state away: train.loss_fn must take logits, as \"cross_entropy\" does");
}

void Model::scale_queries(std::int64_t /*layer*/, const at::Tensor& /*factors*/) {
  fail(Code::config, "this model's query weights cannot be scaled: optimizer.qk_clip needs model_type = \"transformer\"");
}

}  // namespace kf
