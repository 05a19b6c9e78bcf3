#pragma once
// A worker of DiLoCo from outside the loop.

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "model/weight_unit.h"
#include "optim/diloco.h"
#include "parallel/worker_world.h"
#include "support/tiny.h"

namespace kf::test {

/// A worker's share of a job: `world` has all workers.
class DilocoWorker {
 public:
  DilocoWorker(const config::Config& config, const World& world) : bench_(config, at::kFloat, worker_world(world)) {
    auto outer =
        std::make_unique<Diloco>(std::move(bench_.optimizer), bench_.model->parameters(), config.diloco, world.along(Axis::dp_replicate));
    outer_ = outer.get();
    bench_.optimizer = std::move(outer);
    StepperOptions options;
    options.batches = config::BatchPlan(config.train, 1);
    options.world = bench_.world;
    options.share = world.share();
    options.outer = outer_;
    options.guard = config.train;
    options.grad_clip_norm = config.train.grad_clip_norm;
    bench_.stepper = std::make_unique<Stepper>(*bench_.model, *bench_.optimizer, *bench_.objective, options);
  }

  StepResult step(Loader& data, std::int64_t number, double lr) { return bench_.step(data, number, lr); }
  Diloco& outer() { return *outer_; }
  /// Whole, copied.
  std::vector<at::Tensor> weights() {
    const WholeWeights whole(*bench_.model);
    std::vector<at::Tensor> out;
    for (const ParameterPtr& weight : bench_.model->parameters()) {
      out.push_back(weight->value.detach().clone());
    }
    return out;
  }
  Model& model() { return *bench_.model; }

 private:
  Bench bench_;
  Diloco* outer_;
};

}  // namespace kf::test
