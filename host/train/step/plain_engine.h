#pragma once
// One micro-batch after the other, each through the whole model.

#include <cstdint>

#include "model/weight_unit.h"
#include "parallel/sequence_cut.h"
#include "parallel/world.h"
#include "train/step/cut_batch.h"
#include "train/step/engine.h"

namespace kf {

struct PlainEngineOptions {
  at::Device device = at::kCPU;
  Share share = {};            // among the ranks that draw apart (drawing_share): the numbers of their micro-batches interleave
  bool tracks_scores = false;  // for QK-clip
  Group* cp = nullptr;         // who shares the positions of the sequences; null: they are all here
  SequenceOrder order = SequenceOrder::zigzag;
};

/// A micro-batch on the device, and of its sequences what this rank computes.
CutBatch own_positions_of(const Batch& batch, const PlainEngineOptions& options);

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
  UnitLine* line_;   // null on one rank
  at::Tensor zero_;  // 0-dim fp32
};

}  // namespace kf
