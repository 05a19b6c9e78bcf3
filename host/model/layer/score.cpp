#include "model/layer/score.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>

#include <cmath>
#include <limits>
#include <utility>

#include "core/error.h"
#include "model/layer/largest_scores.h"
#include "model/recompute/kept_results.h"
#include "model/recompute/twice_differentiable.h"

namespace kf {
namespace {

/// Repeats every kv head for the query heads that share it: (B, Hkv, S, D) -> (B, Hkv * times, S, D).
at::Tensor repeat_heads(const at::Tensor& x, std::int64_t times) {
  if (times == 1) {
    return x;
  }
  return x.unsqueeze(2).expand({x.size(0), x.size(1), times, x.size(2), x.size(3)}).reshape({x.size(0), -1, x.size(2), x.size(3)});
}

/// Leaves LibTorch one kernel to choose from, for a while.
class OnlyKernel {
 public:
  OnlyKernel(bool flash, bool efficient, bool cudnn)
      : flash_(context().userEnabledFlashSDP()),
        efficient_(context().userEnabledMemEfficientSDP()),
        math_(context().userEnabledMathSDP()),
        cudnn_(context().userEnabledCuDNNSDP()) {
    set(flash, efficient, false, cudnn);
  }
  ~OnlyKernel() { set(flash_, efficient_, math_, cudnn_); }
  OnlyKernel(const OnlyKernel&) = delete;
  OnlyKernel& operator=(const OnlyKernel&) = delete;

 private:
  static at::Context& context() { return at::globalContext(); }
  static void set(bool flash, bool efficient, bool math, bool cudnn) {
    context().setSDPUseFlash(flash);
    context().setSDPUseMemEfficient(efficient);
    context().setSDPUseMath(math);
    context().setSDPUseCuDNN(cudnn);
  }
  bool flash_, efficient_, math_, cudnn_;
};

}  // namespace

at::Tensor alibi_slopes(std::int64_t heads) {
  const auto whole = static_cast<std::int64_t>(std::exp2(std::floor(std::log2(static_cast<double>(heads)))));
  std::vector<double> slopes;
  for (std::int64_t i = 1; i <= whole; ++i) {
    slopes.push_back(std::exp2(-8.0 * static_cast<double>(i) / static_cast<double>(whole)));
  }
  for (std::int64_t i = 1; static_cast<std::int64_t>(slopes.size()) < heads; i += 2) {
    slopes.push_back(std::exp2(-4.0 * static_cast<double>(i) / static_cast<double>(whole)));
  }
  return at::tensor(slopes, at::kFloat);
}

Mixer::Mixer(const ScoreOptions& options, Dropout dropout) : options_(options), dropout_(dropout) {
  const std::string& name = options.backend;
  backend_ = name == "flash"       ? Backend::flash
             : name == "efficient" ? Backend::efficient
             : name == "cudnn"     ? Backend::cudnn
             : name == "math"      ? Backend::formula
                                   : Backend::any;
}

at::Tensor Mixer::mix(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& sinks, const ForwardContext& context,
                      bool training) const {
  const std::int64_t group = q.size(1) / k.size(1);
  const at::Tensor keys = repeat_heads(k, group);
  const at::Tensor values = repeat_heads(v, group);
  const std::int64_t past = k.size(2) - q.size(2);
  const Visibility own(past, q.size(2), q.device());
  const Visibility& visible = context.visible ? *context.visible : own;
  const at::Tensor mask = visible.mask(options_.reach);
  if (context.tracks_scores && context.results != nullptr) {
    context.results->note_largest(static_cast<std::size_t>(options_.layer), largest_scores(q, k, options_.scale, mask, visible.causal()));
  }
  const bool plain =
      sinks.defined() || options_.softcap > 0 || dropout_.active(training) || backend_ == Backend::formula || TwiceDifferentiable::wanted();
  const bool triangle = !mask.defined() && past == 0 && (plain || options_.alibi_heads > 0);
  const at::Tensor seen = triangle ? at::ones({q.size(2), k.size(2)}, q.options().dtype(at::kBool)).tril() : mask;
  const at::Tensor bias = options_.alibi_heads > 0 ? alibi(seen, q.size(2), k.size(2), q.device()) : at::Tensor();
  if (plain) {
    return formula(q, keys, values, sinks, seen, bias, context, training);
  }
  return bias.defined() ? fused(q, keys, values, bias.to(q.scalar_type()), false)
                        : fused(q, keys, values, mask, !mask.defined() && visible.causal());
}

at::Tensor Mixer::alibi(const at::Tensor& seen, std::int64_t fresh, std::int64_t all, at::Device device) const {
  if (!slopes_.defined() || slopes_.device() != device) {
    slopes_ = alibi_slopes(options_.alibi_heads).mul_(options_.alibi_scale).to(device);
  }
  const at::TensorOptions options = slopes_.options();
  const at::Tensor query = at::arange(all - fresh, all, options).unsqueeze(1);                            // (T, 1)
  const at::Tensor penalty = (at::arange(all, options) - query).unsqueeze(0) * slopes_.view({-1, 1, 1});  // (H, T, S)
  return seen.defined() ? penalty.unsqueeze(0).masked_fill(seen.logical_not(), -std::numeric_limits<double>::infinity())
                        : penalty.unsqueeze(0);
}

at::Tensor Mixer::fused(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& mask, bool causal) const {
  const std::optional<at::Tensor> given = mask.defined() ? std::optional(mask) : std::nullopt;
  const auto run = [&] {
    return named_result("context", [&] { return at::scaled_dot_product_attention(q, k, v, given, 0.0, causal, options_.scale); });
  };
  if (backend_ == Backend::any) {
    return run();
  }
  const OnlyKernel only(backend_ == Backend::flash, backend_ == Backend::efficient, backend_ == Backend::cudnn);
  try {
    return run();
  } catch (const c10::Error& e) {
    fail(Code::config, "model.sdpa_backend = \"{}\" has no kernel for this attention ({}); use \"auto\" or \"math\"", options_.backend,
         e.what_without_backtrace());
  }
}

at::Tensor Mixer::formula(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& sinks, const at::Tensor& mask,
                          const at::Tensor& bias, const ForwardContext& context, bool training) const {
  const bool wide = options_.fp32_scores;
  at::Tensor scores = at::matmul(wide ? q.to(at::kFloat) : q, (wide ? k.to(at::kFloat) : k).transpose(-2, -1)) * options_.scale;
  if (options_.softcap > 0) {
    scores = at::tanh(scores / options_.softcap) * options_.softcap;
  }
  if (options_.fp32_softmax) {
    scores = scores.to(at::kFloat);
  }
  if (bias.defined()) {
    scores = scores + bias.to(scores.scalar_type());
  }
  if (mask.defined()) {
    scores = scores.masked_fill(mask.logical_not(), -std::numeric_limits<double>::infinity());
  }
  at::Tensor weights;  // (B, H, T, S)
  if (sinks.defined()) {
    const at::Tensor column = sinks.view({1, -1, 1, 1}).expand({q.size(0), q.size(1), q.size(2), 1}).to(scores.scalar_type());
    weights = at::softmax(at::cat({scores, column}, -1), -1).narrow(-1, 0, k.size(2));
  } else {
    weights = at::softmax(scores, -1);
  }
  const at::Tensor dropped = dropout_.apply(weights.to(v.scalar_type()), context, training);
  return named_result("context", [&] { return at::matmul(dropped, v); });
}

}  // namespace kf
