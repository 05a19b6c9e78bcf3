#include "model/transformer/whole_parts.h"

#include <ATen/core/Tensor.h>

#include <utility>

#include "model/layer/runs_whole.h"

namespace kf {
namespace {

template <class Part>
at::Tensor run_whole(const Part& part, const TensorRanks& ranks, const at::Tensor& x, const ForwardContext& context) {
  if (!context.split_sequence) {
    return part.forward(x, context);
  }
  ForwardContext inside = context;
  inside.split_sequence = false;
  return ranks.own(part.forward(ranks.whole(x, context), inside), context);
}

class WholeMlp final : public Mlp, public RunsWhole {
 public:
  WholeMlp(std::shared_ptr<Mlp> part, const TensorRanks& ranks) : part_(add_child("", std::move(part))), ranks_(ranks) {}
  bool observable() const override { return false; }  // the part is
  at::Tensor forward(const at::Tensor& x, const ForwardContext& context) const override { return run_whole(*part_, ranks_, x, context); }

 private:
  std::shared_ptr<Mlp> part_;
  TensorRanks ranks_;
};

/// What attentions and blocks have in common beside their forward.
template <class Kind>
class WholeLayer final : public Kind, public RunsWhole {
 public:
  WholeLayer(std::shared_ptr<Kind> part, const TensorRanks& ranks) : part_(this->add_child("", std::move(part))), ranks_(ranks) {}
  bool observable() const override { return false; }
  at::Tensor forward(const at::Tensor& x, const ForwardContext& context) const override { return run_whole(*part_, ranks_, x, context); }
  void scale_queries(const at::Tensor& factors) const override { part_->scale_queries(factors); }
  KvCache::Layer make_cache(std::int64_t batch, std::int64_t capacity, const at::Tensor& like) const override {
    return part_->make_cache(batch, capacity, like);
  }
  bool has_cache() const override { return part_->has_cache(); }
  bool takes_padding() const override { return part_->takes_padding(); }
  bool keeps_cache(std::int64_t length, std::int64_t longer) const override { return part_->keeps_cache(length, longer); }

 private:
  std::shared_ptr<Kind> part_;
  TensorRanks ranks_;
};

}  // namespace

std::shared_ptr<Mlp> whole_part(std::shared_ptr<Mlp> part, const TensorRanks& ranks) {
  return ranks.many() ? std::make_shared<WholeMlp>(std::move(part), ranks) : std::move(part);
}

std::shared_ptr<Attention> whole_part(std::shared_ptr<Attention> part, const TensorRanks& ranks) {
  return ranks.many() ? std::make_shared<WholeLayer<Attention>>(std::move(part), ranks) : std::move(part);
}

std::shared_ptr<Block> whole_part(std::shared_ptr<Block> part, const TensorRanks& ranks) {
  return ranks.many() ? std::make_shared<WholeLayer<Block>>(std::move(part), ranks) : std::move(part);
}

}  // namespace kf
