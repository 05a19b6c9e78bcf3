#pragma once
// Micro-batches through the pieces of a model, in the order of a schedule.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/plan/pipeline.h"
#include "kernels/product/put_off.h"
#include "model/pipelined_model.h"
#include "model/weight_unit.h"
#include "train/step/engine.h"
#include "train/step/pipeline_mail.h"
#include "train/step/plain_engine.h"

namespace kf {

/// Every rank of the pipeline reads the same micro-batches. The loss is taken on the last one; terms that the layers themselves add
/// (experts) enter where they are made: their gradients cross no border. Sums reach all ranks.
///
/// zero_bubble: the gradients of the weights of linear layers wait until their turn comes; those of all others (embeddings, norms, experts,
/// a head inside of a fused loss) come with the gradients of the inputs.
class PipelineEngine final : public Engine {
 public:
  /// `model` outlives it.
  PipelineEngine(PipelinedModel& model, const PlainEngineOptions& options);
  StepSums run(const MicroBatches& update, const Objective& objective, const EngineCallbacks& callbacks) override;
  /// Throws Code::config: the graph of a loss ends at the border of a stage.
  void losses(const MicroBatches& update, const Objective& objective, const std::function<void(const at::Tensor& loss)>& visit) override;

 private:
  /// A micro-batch in a piece, between its forward and the end of its backward.
  struct Flight {
    ForwardResults results;
    at::Tensor in;     // hidden states that came; undefined where the piece embeds
    at::Tensor out;    // that went; undefined in the last piece
    at::Tensor share;  // of the loss, with the graph; undefined for none
    PutOffProducts weights;
  };
  struct Step;

  const config::PipelinePlan& plan_of(std::int64_t micros);
  void act(Step& step, const config::PipelineAction& action);
  void forward(Step& step, const config::PipelineAction& action);
  void backward(Step& step, const config::PipelineAction& action);
  void weight_gradients(Step& step, const config::PipelineAction& action);
  void end_backward(Step& step, const config::PipelineAction& action, ForwardResults&& results);
  void accumulate(std::int64_t piece);
  void join(StepSums& sums) const;

  PipelinedModel& model_;
  PlainEngineOptions options_;
  std::vector<ParameterList> weights_;  // of each piece of the model that lies here
  UnitLine* line_;                      // null on one data rank
  std::optional<config::PipelinePlan> plan_;
};

}  // namespace kf
