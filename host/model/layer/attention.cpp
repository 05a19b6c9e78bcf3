#include "model/layer/attention.h"

#include <ATen/ATen.h>

#include "core/error.h"
#include "model/layer/rope.h"
#include "model/layer/visibility.h"

namespace kf {

void Attention::scale_queries(const at::Tensor& /*factors*/) const {
  fail(Code::config, "optimizer.qk_clip cannot scale the queries of this attention; use model.attention = \"gqa\", or leave qk_clip out");
}

KvCache::Layer Attention::make_cache(std::int64_t /*batch*/, std::int64_t /*capacity*/, const at::Tensor& /*like*/) const {
  fail(Code::config, "this attention keeps no keys and values, so the model cannot generate; use model.attention = \"gqa\" or \"mla\"");
}

at::Tensor rotated(const Rope* rope, const at::Tensor& x, const ForwardContext& context, bool absolute) {
  if (rope == nullptr) {
    return x;
  }
  if (context.visible && rope->depends_on_length() && context.visible->lengths().defined()) {
    return rope->rotate_texts(x, context.visible->positions(), context.visible->lengths());
  }
  if (const SequencePart* part = context.visible ? context.visible->part() : nullptr; part != nullptr) {
    const at::Tensor places = absolute ? context.visible->positions() : part->positions.unsqueeze(0);
    return rope->rotate(x, part->cut.length() - x.size(2), places);
  }
  const std::int64_t first = context.cache != nullptr ? context.cache->filled : 0;
  return rope->rotate(x, first, absolute && context.visible ? context.visible->positions() : at::Tensor());
}

at::Tensor append(const at::Tensor& kept, std::int64_t filled, const at::Tensor& fresh) {
  kept.narrow(2, filled, fresh.size(2)).copy_(fresh);
  return kept.narrow(2, 0, filled + fresh.size(2));
}

}  // namespace kf
