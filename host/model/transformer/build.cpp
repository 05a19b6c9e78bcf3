#include "model/transformer/build.h"

#include "core/error.h"
#include "model/freeze.h"
#include "model/transformer/adapters.h"

namespace kf {

std::shared_ptr<Model> build_model(const config::Config& config, const Registries& registries) {
  std::shared_ptr<Model> model = make_part(registries.model, config.model.model_type, config, registries);
  model->parameters();  // names them
  attach_adapters(*model, config, registries);
  freeze(*model, config.train);
  return model;
}

at::Tensor Model::project(const at::Tensor& /*hidden*/) const {
  fail(Code::config, "this model has no head of its own to look ahead with");
}

}  // namespace kf
