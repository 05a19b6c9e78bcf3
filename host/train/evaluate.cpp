#include "train/evaluate.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "core/error.h"
#include "metrics/numbers.h"
#include "model/mode.h"
#include "train/fused_cross_entropy.h"
#include "train/losses.h"
#include "train/stepper.h"

namespace kf {
namespace {

constexpr std::int64_t kChunk = 4096;  // positions

at::Tensor loss_sum(Model& model, const Batch& batch, bool in_chunks) {
  ForwardContext context;
  context.doc_ids = batch.doc_ids;
  const at::Tensor labels = batch.labels.flatten();
  if (in_chunks) {
    return fused_cross_entropy(model.hidden(batch.tokens, context).flatten(0, 1), *model.head(), labels, {}, kChunk).ce;
  }
  return CrossEntropy().sum(model.forward(batch.tokens, context).flatten(0, 1), labels);
}

}  // namespace

EvalResult evaluate(Model& model, Optimizer& optimizer, Loader& loader, std::int64_t steps, at::Device device, std::int64_t at_step,
                    bool in_chunks) {
  const at::NoGradGuard no_grad;
  const EvaluationMode mode(model);
  const WithAverages averages(optimizer);
  at::Tensor total = at::zeros({}, at::TensorOptions(device).dtype(at::kDouble));
  EvalResult result;
  result.step = at_step;
  const std::int64_t count = steps < 0 ? loader.batches_per_epoch() : std::min(steps, loader.batches_per_epoch());
  for (std::int64_t index = 0; index < count; ++index) {
    const Batch batch = to_device(loader.batch(index), device);
    total += loss_sum(model, batch, in_chunks && model.head().has_value());
    result.tokens += batch.counted;
  }
  KF_CHECK(result.tokens > 0, Code::data, "the evaluation data ({}) has no token that counts", loader.describe());
  result.loss = total.item<double>() / static_cast<double>(result.tokens);
  result.perplexity = perplexity(result.loss);
  return result;
}

}  // namespace kf
