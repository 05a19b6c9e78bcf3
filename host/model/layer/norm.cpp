#include "model/layer/norm.h"

#include <ATen/ATen.h>

#include "model/observe.h"
#include "registry/registries.h"

namespace kf {
namespace {

Init weight_init(const NormOptions& o) { return o.unit_offset ? Init::zeros() : Init::ones(); }

/// What the normalised values are multiplied by.
at::Tensor factor_of(const Parameter& weight, const NormOptions& o) { return o.unit_offset ? weight.value + 1 : weight.value; }

/// The mean over whole rows of which each rank has a part: (.., C / size) -> (.., 1).
at::Tensor mean_of_all(const at::Tensor& x, const NormOptions& o) {
  return o.ranks.summed_for_shares(x.sum(-1, /*keepdim=*/true)) / static_cast<double>(x.size(-1) * o.ranks.size());
}

/// x / sqrt(mean(x^2) + eps) of such rows, in fp32.
at::Tensor scaled_to_one(const at::Tensor& x, const NormOptions& o) { return x * at::rsqrt(mean_of_all(x.square(), o) + o.eps); }

void divide(const ParameterPtr& weight, const NormOptions& o) {
  if (weight && o.ranks.many()) {
    weight->split = Split::colwise;
    weight->split_unit = o.unit;
  }
}

}  // namespace

SumAndNorm Norm::forward_sum(const at::Tensor& x, const at::Tensor& branch) const {
  const at::Tensor sum = x + branch;
  return {sum, forward(sum)};
}

RmsNorm::RmsNorm(std::int64_t dim, const NormOptions& options)
    : weight_(options.weight ? add_parameter("weight", {dim}, weight_init(options), Role::vector) : nullptr), options_(options) {
  divide(weight_, options_);
}

at::Tensor RmsNorm::forward(const at::Tensor& x) const {
  if (options_.ranks.many()) {
    const at::Tensor normal = scaled_to_one(x.to(at::kFloat), options_);
    return observed(*this, x, (weight_ ? normal * factor_of(*weight_, options_) : normal).to(x.scalar_type()));
  }
  return observed(*this, x, options_.kernels->rms_norm(x, factor(), options_.eps));
}

SumAndNorm RmsNorm::forward_sum(const at::Tensor& x, const at::Tensor& branch) const {
  if (options_.ranks.many()) {
    return Norm::forward_sum(x, branch);
  }
  SumAndNorm out = options_.kernels->add_rms_norm(x, branch, factor(), options_.eps);
  out.norm = observed(*this, out.sum, out.norm);
  return out;
}

std::optional<RmsFactor> RmsNorm::as_rms() const {
  return options_.ranks.many() ? std::nullopt : std::optional(RmsFactor{factor(), options_.eps});
}

at::Tensor RmsNorm::factor() const { return weight_ ? factor_of(*weight_, options_) : at::Tensor(); }

HeadNorm::HeadNorm(std::shared_ptr<Norm> plain, std::int64_t heads, std::int64_t dim, const NormOptions& options)
    : plain_(add_child("", std::move(plain))),
      weight_(options.weight ? add_parameter("weight", {heads, dim}, weight_init(options), Role::vector) : nullptr),
      options_(options) {
  if (weight_) {
    weight_->keep_fp32 = true;  // as every vector
    weight_->stack = StackNames{"weight", "norms.{}.weight", /*write_packed=*/true};
    weight_->split = Split::colwise;  // a layer that has all heads on every rank says otherwise
  }
}

at::Tensor HeadNorm::forward(const at::Tensor& x) const {
  const at::Tensor normal = plain_->forward(weight_ ? x.to(at::promote_types(x.scalar_type(), at::kFloat)) : x);
  return observed(*this, x, (weight_ ? normal * factor_of(*weight_, options_) : normal).to(x.scalar_type()));
}

LayerNorm::LayerNorm(std::int64_t dim, const NormOptions& options)
    : weight_(options.weight ? add_parameter("weight", {dim}, weight_init(options), Role::vector) : nullptr),
      bias_(options.bias ? add_parameter("bias", {dim}, Init::zeros(), Role::vector) : nullptr),
      options_(options) {
  divide(weight_, options_);
  divide(bias_, options_);
}

at::Tensor LayerNorm::forward(const at::Tensor& x) const {
  if (options_.ranks.many()) {
    const at::Tensor wide = x.to(at::kFloat);
    at::Tensor y = scaled_to_one(wide - mean_of_all(wide, options_), options_);
    y = weight_ ? y * factor_of(*weight_, options_) : y;
    return observed(*this, x, (bias_ ? y + bias_->value : y).to(x.scalar_type()));
  }
  return observed(*this, x, options_.kernels->layer_norm(x, weights(), options_.eps));
}

SumAndNorm LayerNorm::forward_sum(const at::Tensor& x, const at::Tensor& branch) const {
  if (options_.ranks.many()) {
    return Norm::forward_sum(x, branch);
  }
  SumAndNorm out = options_.kernels->add_layer_norm(x, branch, weights(), options_.eps);
  out.norm = observed(*this, out.sum, out.norm);
  return out;
}

LayerNormWeights LayerNorm::weights() const {
  return {weight_ ? factor_of(*weight_, options_) : at::Tensor(), bias_ ? bias_->value : at::Tensor()};
}

NormOptions norm_options(const PartArgs& args) {
  const config::ModelConfig& m = args.config.model;
  return {m.norm_eps, m.norm_weight, m.norm_unit_offset, m.norm_bias, args.kernels};
}

}  // namespace kf
