#include "model/layer/tensor_ranks.h"

#include <ATen/ATen.h>

#include "config/schema/config.h"
#include "core/error.h"
#include "model/forward.h"
#include "model/layer/dropout.h"
#include "model/layer/visibility.h"
#include "model/module.h"
#include "parallel/graph.h"
#include "parallel/world.h"
#include "registry/registries.h"

namespace kf {

TensorRanks::TensorRanks(const PartArgs& args) {
  if (args.world != nullptr && args.world->along(Axis::tp).size() > 1) {
    group_ = &args.world->along(Axis::tp);
    sequence_ = args.config.distributed.sequence_parallel;
  }
}

TensorRanks::TensorRanks(Group& group, bool sequence)
    : group_(group.size() > 1 ? &group : nullptr), sequence_(group.size() > 1 && sequence) {}

std::int64_t TensorRanks::share_of(std::int64_t whole, const char* what) const {
  KF_CHECK(whole % size() == 0, Code::config, "{} {} are not divisible by distributed.tp ({})", whole, what, size());
  return whole / size();
}

at::Tensor TensorRanks::enter(const at::Tensor& x, const ForwardContext& context) const {
  if (!many()) {
    return x;
  }
  return context.split_sequence ? gathered(x, 1, positions_of(context), *group_) : kf::shared(x, *group_);
}

at::Tensor TensorRanks::leave(const at::Tensor& share, const ForwardContext& context) const {
  if (!many()) {
    return share;
  }
  return context.split_sequence ? scattered(share, 1, *group_) : kf::summed(share, *group_);
}

at::Tensor TensorRanks::whole(const at::Tensor& x, const ForwardContext& context) const {
  return many() && context.split_sequence ? kf::joined(x, 1, positions_of(context), *group_) : x;
}

at::Tensor TensorRanks::own(const at::Tensor& x, const ForwardContext& context) const {
  return many() && context.split_sequence ? own_part(x, 1, *group_) : x;
}

at::Tensor TensorRanks::shared(const at::Tensor& x) const { return many() ? kf::shared(x, *group_) : x; }

at::Tensor TensorRanks::summed(const at::Tensor& share) const { return many() ? kf::summed(share, *group_) : share; }

at::Tensor TensorRanks::joined(const at::Tensor& part) const {
  return many() ? kf::joined(part, part.dim() - 1, part.size(-1) * size(), *group_) : part;
}

at::Tensor TensorRanks::part_of(const at::Tensor& x) const { return many() ? own_part(x, x.dim() - 1, *group_) : x; }

at::Tensor TensorRanks::summed_for_shares(const at::Tensor& share) const { return shared(summed(share)); }

TensorRanks::Rows TensorRanks::rows(std::int64_t length, const ForwardContext& context) const {
  if (!many() || !context.split_sequence) {
    return {0, length};
  }
  const std::vector<std::int64_t> all = even_rows(length, size());
  return {offsets_of(all)[static_cast<std::size_t>(rank())], all[static_cast<std::size_t>(rank())]};
}

at::Tensor TensorRanks::dropped(const Dropout& dropout, const at::Tensor& x, const ForwardContext& context, bool training) const {
  if (!many() || !context.split_sequence) {
    return dropout.apply(x, context, training);
  }
  const std::int64_t length = positions_of(context);
  return dropout.apply_part(x, 1, rows(length, context).begin, length, {context.step, context.micro}, training);
}

void TensorRanks::between(Parameter& weight) const {
  if (sequence_ && weight.split == Split::replicate) {
    weight.split = Split::sequence;
  }
}

void TensorRanks::between(Module& module) const {
  for (const auto& [name, weight] : module.named_parameters()) {
    between(*weight);
  }
}

std::int64_t positions_of(const ForwardContext& context) { return context.visible->positions().size(1); }

}  // namespace kf
