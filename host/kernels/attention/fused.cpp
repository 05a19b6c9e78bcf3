#include "kernels/attention/attention.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>

#include <optional>

#include "core/error.h"
#include "kernels/attention/by_rows.h"
#include "kernels/product/result_name.h"

namespace kf {
namespace {

using Backend = AttentionRules::Backend;

/// Leaves LibTorch one kernel to choose from, for a while.
class OnlyKernel {
 public:
  explicit OnlyKernel(Backend backend)
      : flash_(context().userEnabledFlashSDP()),
        efficient_(context().userEnabledMemEfficientSDP()),
        math_(context().userEnabledMathSDP()),
        cudnn_(context().userEnabledCuDNNSDP()) {
    set(backend == Backend::flash, backend == Backend::efficient, false, backend == Backend::cudnn);
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

const char* name_of(Backend backend) {
  switch (backend) {
    case Backend::flash: return "flash";
    case Backend::efficient: return "efficient";
    case Backend::cudnn: return "cudnn";
    case Backend::any: break;
  }
  return "auto";
}

/// What LibTorch takes as its mask: who is seen, or what is added to the scores.
std::optional<at::Tensor> given_mask(const AttentionInput& in) {
  if (in.bias.defined()) {
    return in.bias.to(in.q.scalar_type());
  }
  const at::Tensor seen = in.seen();
  return seen.defined() ? std::optional(seen) : std::nullopt;
}

}  // namespace

at::Tensor fused_attention(const AttentionInput& in, const AttentionRules& rules) {
  if (rules.backend == Backend::any && takes_rows(in, rules)) {
    return named_result("context", [&] { return attention_by_rows(in, rules); });
  }
  if (in.sinks.defined() || in.drop || rules.softcap > 0) {
    return plain_attention(in, rules);
  }
  const std::optional<at::Tensor> mask = given_mask(in);
  const at::Tensor k = repeat_heads(in.k, in.q.size(1)), v = repeat_heads(in.v, in.q.size(1));
  const auto run = [&] {
    return named_result("context",
                        [&] { return at::scaled_dot_product_attention(in.q, k, v, mask, 0.0, !mask && in.causal, rules.scale); });
  };
  if (rules.backend == Backend::any) {
    return run();
  }
  const OnlyKernel only(rules.backend);
  try {
    return run();
  } catch (const c10::Error& e) {
    fail(Code::config, "model.sdpa_backend = \"{}\" has no kernel for this attention ({}); use \"auto\" or \"math\"",
         name_of(rules.backend), e.what_without_backtrace());
  }
}

}  // namespace kf
