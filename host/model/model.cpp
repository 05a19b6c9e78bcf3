#include "model/model.h"

#include "core/error.h"

namespace kf {

OutputHead::Precision logits_precision(const std::string& name) {
  return name == "compute" ? OutputHead::Precision::compute : name == "fp32" ? OutputHead::Precision::fp32 : OutputHead::Precision::cast;
}

at::Tensor Model::project(const at::Tensor& /*hidden*/) const {
  fail(Code::config, "this model has no head of its own to look ahead with");
}

AuxLosses Model::aux_losses(ForwardResults& results) { return book() != nullptr ? book()->losses(results, data_ranks_) : AuxLosses(); }

void Model::end_micro(const ForwardResults& results) {
  if (book() != nullptr) {
    book()->end_micro(results);
  }
}

void Model::end_step(bool updated, double progress) {
  if (book() != nullptr) {
    book()->end_step(updated, progress, data_ranks_);
  }
}

bool Model::follows_updates() { return book() != nullptr && book()->follows_updates(); }

std::vector<std::pair<std::string, double>> Model::metrics() {
  return book() != nullptr ? book()->metrics() : std::vector<std::pair<std::string, double>>();
}

at::Tensor Model::hidden(const at::Tensor& /*tokens*/, ForwardContext& /*context*/) {
  fail(Code::config, "this model gives no hidden state away: train.loss_fn must take logits, as \"cross_entropy\" does");
}

void Model::scale_queries(std::int64_t /*layer*/, const at::Tensor& /*factors*/) {
  fail(Code::config, "this model's query weights cannot be scaled: optimizer.qk_clip needs model_type = \"transformer\"");
}

}  // namespace kf
