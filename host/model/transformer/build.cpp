#include "model/transformer/build.h"

#include "model/freeze.h"
#include "model/pipeline/pipelined_model.h"
#include "model/transformer/adapters.h"

namespace kf {

std::shared_ptr<Model> build_model(const config::Config& config, const Registries& registries, const ModelPart& part) {
  std::shared_ptr<Model> model = make_part(registries.model, config.model.model_type,
                                           PartArgs{config, {}, registries, registries.kernels_of(config), part.world, part.stage});
  if (part.world != nullptr && part.world->along(Axis::pp).size() > 1) {
    model = std::make_shared<PipelinedModel>(std::move(model), config, *part.world);
  }
  model->parameters();  // names them
  attach_adapters(*model, config, registries);
  freeze(*model, config.train);
  return model;
}

}  // namespace kf
