#include "model/transformer/build.h"

#include "config/plan/pipeline.h"
#include "model/freeze.h"
#include "model/pipelined_model.h"
#include "model/transformer/adapters.h"
#include "model/transformer/planned_split.h"

namespace kf {

std::shared_ptr<Model> build_model(const config::Config& config, const Registries& registries, const ModelPart& part) {
  std::shared_ptr<Model> model = make_part(registries.model, config.model.model_type,
                                           PartArgs{config, {}, registries, registries.kernels_of(config), part.world, part.stage});
  model->parameters();  // names them
  split_as_planned(*model, config, registries, part.world);
  if (part.world != nullptr && part.world->along(Axis::pp).size() > 1) {
    std::vector<Piece> pieces;
    for (const config::Stage& stage : config::pipeline_stages(config)) {
      pieces.push_back({stage.first, stage.end, stage.embeds, stage.heads});
    }
    model = std::make_shared<PipelinedModel>(std::move(model), config, *part.world, std::move(pieces));
  }
  model->parameters();
  attach_adapters(*model, config, registries);
  freeze(*model, config.train);
  return model;
}

}  // namespace kf
