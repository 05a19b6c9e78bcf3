#pragma once
// One micro-batch after the other, each through the whole model.

#include <cstdint>

#include "model/weight_unit.h"
#include "parallel/world.h"
#include "train/step/engine.h"

namespace kf {

struct PlainEngineOptions {
  at::Device device = at::kCPU;
  Share share = {};            // of the data: ranks that share an update draw differently
  bool tracks_scores = false;  // for QK-clip
};

class PlainEngine final : public Engine {
 public:
  /// `model` outlives it.
  PlainEngine(Model& model, const PlainEngineOptions& options);
  StepSums run(const MicroBatches& update, const Objective& objective, const EngineCallbacks& callbacks) override;
  void losses(const MicroBatches& update, const Objective& objective, const std::function<void(const at::Tensor& loss)>& visit) override;

 private:
  Minimised forward(const MicroBatches& update, const Objective& objective, std::size_t number, ForwardContext& context,
                    SourceLosses* sources);
  void backward(const at::Tensor& loss, bool last);

  Model& model_;
  PlainEngineOptions options_;
  ParameterList parameters_;
  UnitLine* line_;  // null on one rank
};

}  // namespace kf
