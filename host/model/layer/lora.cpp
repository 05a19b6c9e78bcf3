#include "model/layer/lora.h"

#include <ATen/ATen.h>

#include <cmath>

#include "config/schema/config.h"
#include "kernels/product/product.h"

namespace kf {

Lora::Lora(const config::Config& config, const AdapterPlace& place)
    : a_(add_parameter("a", {config.adapter.rank, place.in}, Init::uniform(1 / std::sqrt(static_cast<double>(place.in))))),
      b_(add_parameter("b", {place.out, config.adapter.rank}, Init::zeros())),
      scale_(config.adapter.alpha / static_cast<double>(config.adapter.rank)),
      dropout_(config.adapter.dropout, config.train.seed, -1, place.layer),
      moment_(place.moment) {}

at::Tensor Lora::dropped(const at::Tensor& x) const {
  if (a_->split != Split::rowwise || !ranks_.many()) {
    return dropout_.apply(x, *moment_, training());
  }
  return dropout_.apply_part(x, x.dim() - 1, ranks_.rank() * x.size(-1), ranks_.size() * x.size(-1), *moment_, training());
}

at::Tensor Lora::delta(const at::Tensor& x) const {
  const at::Tensor inner = kf::linear(dropped(x), a_->value);  // (.., rank)
  return kf::linear(inner * scale_, b_->value);
}

at::Tensor Lora::merged(const at::Tensor& weight) const { return weight + at::mm(b_->master, a_->master) * scale_; }

void Lora::split(Split how, std::int64_t unit, const TensorRanks& ranks) {
  ranks_ = ranks;
  Parameter& follows = how == Split::rowwise ? *a_ : *b_;
  Parameter& other = how == Split::rowwise ? *b_ : *a_;
  follows.split = how;
  follows.split_unit = unit;
  other.split = how == Split::replicate ? Split::replicate : Split::sequence;
}

}  // namespace kf
