#include "model/layer/vocabulary.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "model/model.h"
#include "parallel/world.h"

namespace kf {

at::Tensor embedded(const at::Tensor& part, const at::Tensor& tokens, std::int64_t pad, const TensorRanks& ranks,
                    const ForwardContext& context) {
  if (!ranks.many()) {
    return at::embedding(part, tokens, pad);
  }
  const std::int64_t count = part.size(0), begin = ranks.rank() * count;
  const at::Tensor own = tokens - begin;
  const at::Tensor elsewhere = own.lt(0).logical_or(own.ge(count));
  const bool pads = pad >= begin && pad < begin + count;
  const at::Tensor rows = at::embedding(part, own.masked_fill(elsewhere, 0), pads ? pad - begin : -1);
  return ranks.leave(rows.masked_fill(elsewhere.unsqueeze(-1), 0), context);
}

Group* vocabulary_ranks(Model& model, const World& world) {
  const ParameterList all = model.parameters();
  const bool divided = std::any_of(all.begin(), all.end(), [](const ParameterPtr& weight) { return weight->split == Split::vocab; });
  return divided && world.along(Axis::tp).size() > 1 ? &world.along(Axis::tp) : nullptr;
}

}  // namespace kf
