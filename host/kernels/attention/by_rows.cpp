#include "kernels/attention/by_rows.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <limits>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "kernels/attention/rows.h"

namespace kf {
namespace {

namespace ag = torch::autograd;

/// Neighbours along rows, which is what the kernels need.
at::Tensor rows_whole(const at::Tensor& x) { return x.stride(3) == 1 || x.size(3) == 1 ? x : x.contiguous(); }

HeadRows head_rows(const at::Tensor& x) { return {x.data_ptr(), x.stride(0), x.stride(1), x.stride(2)}; }

/// As x, and one row behind the other for all heads: as projections make and take it.
at::Tensor rows_like(const at::Tensor& x) {
  return at::empty({x.size(0), x.size(2), x.size(1), x.size(3)}, x.options().requires_grad(false)).transpose(1, 2);
}

std::optional<at::Tensor> given(const at::Tensor& x) { return x.defined() ? std::optional(x) : std::nullopt; }
at::Tensor first_of(const AttentionInput& in) { return in.ranges != nullptr ? in.ranges->first() : at::Tensor(); }
/// How many keys behind its own number a query sees.
std::int64_t ahead_of(const AttentionInput& in) {
  if (in.ranges != nullptr) {
    return in.ranges->ahead();
  }
  return in.causal ? 0 : in.k.size(2);
}

/// The tensors of an input with memory as the kernels want it.
struct Operands {
  at::Tensor q, k, v, first, sinks;  // first and sinks may be undefined
  std::int64_t ahead;

  explicit Operands(const AttentionInput& in)
      : q(rows_whole(in.q)),
        k(rows_whole(in.k)),
        v(rows_whole(in.v)),
        first(first_of(in)),
        sinks(in.sinks.defined() ? in.sinks.to(at::kFloat).contiguous() : at::Tensor()),
        ahead(ahead_of(in)) {
    if (first.defined()) {
      first = first.contiguous();
    }
  }

  void fill(AttentionRows& rows, const AttentionRules& rules) const {
    rows.q = head_rows(q);
    rows.k = head_rows(k);
    rows.v = head_rows(v);
    rows.bf16 = q.scalar_type() == at::kBFloat16;
    rows.batches = q.size(0);
    rows.heads = q.size(1);
    rows.kv_heads = k.size(1);
    rows.queries = q.size(2);
    rows.keys = k.size(2);
    rows.width = q.size(3);
    rows.value_width = v.size(3);
    rows.first = first.defined() ? first.const_data_ptr<std::int64_t>() : nullptr;
    rows.first_batch = first.defined() && first.size(0) > 1 ? first.stride(0) : 0;
    rows.ahead = ahead;
    rows.scale = static_cast<float>(rules.scale);
    rows.softcap = static_cast<float>(rules.softcap);
  }
};

/// What `first_of` and `ahead_of` say of it.
AttentionInput input_of(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& first, const at::Tensor& sinks,
                        std::int64_t ahead) {
  AttentionInput in{q, k, v, {}, false, {}, sinks, nullptr, nullptr};
  if (first.defined()) {
    in.ranges = std::make_shared<KeyRanges>(first, k.size(2), ahead);
  } else {
    in.causal = ahead == 0;
  }
  return in;
}

std::tuple<at::Tensor, at::Tensor> forward_of(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                              const std::optional<at::Tensor>& first, const std::optional<at::Tensor>& sinks,
                                              std::int64_t ahead, double scale, double softcap) {
  const AttentionInput in = input_of(q, k, v, first.value_or(at::Tensor()), sinks.value_or(at::Tensor()), ahead);
  AttentionRules rules;
  rules.scale = scale;
  rules.softcap = softcap;
  RowsAttention out = rows_forward(in, rules);
  return {out.out, out.log_sum};
}

constexpr const char* kSchema =
    "attention(Tensor q, Tensor k, Tensor v, Tensor? first, Tensor? sinks, int ahead, float scale, float softcap) -> (Tensor, Tensor)";

/// Through LibTorch's dispatcher, where recomputation finds results to keep.
std::tuple<at::Tensor, at::Tensor> call(const AttentionInput& in, const AttentionRules& rules) {
  static const auto op = [] {
    auto* const library = new torch::Library(torch::Library::DEF, "kf", std::nullopt, __FILE__, __LINE__);  // for good
    library->def(kSchema);
    library->impl("attention", torch::dispatch(c10::DispatchKey::CPU, TORCH_FN(forward_of)));
    return c10::Dispatcher::singleton().findSchemaOrThrow("kf::attention", "").typed<decltype(forward_of)>();
  }();
  const at::AutoDispatchBelowADInplaceOrView below;
  return op.call(in.q, in.k, in.v, given(first_of(in)), given(in.sinks), ahead_of(in), rules.scale, rules.softcap);
}

struct ByRows : ag::Function<ByRows> {
  static at::Tensor forward(ag::AutogradContext* context, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const std::optional<at::Tensor>& sinks, const std::optional<at::Tensor>& first, std::int64_t ahead,
                            const AttentionRules& rules) {
    ag::variable_list saved{q, k, v, sinks.value_or(at::Tensor()), first.value_or(at::Tensor())};
    const auto [out, log_sum] = call(input_of_saved(saved, ahead), rules);
    saved.insert(saved.end(), {out, log_sum});
    context->save_for_backward(std::move(saved));
    context->saved_data["ahead"] = ahead;
    context->saved_data["scale"] = rules.scale;
    context->saved_data["softcap"] = rules.softcap;
    return out;
  }

  static ag::variable_list backward(ag::AutogradContext* context, const ag::variable_list& gradients) {
    const ag::variable_list saved = context->get_saved_variables();
    const AttentionInput in = input_of_saved(saved, context->saved_data["ahead"].toInt());
    AttentionRules rules;
    rules.scale = context->saved_data["scale"].toDouble();
    rules.softcap = context->saved_data["softcap"].toDouble();
    if (at::GradMode::is_enabled()) {  // a gradient of the gradient is asked for
      return of_formula(in, rules, gradients[0]);
    }
    const at::Tensor& log_sum = saved[6];
    const RowsGradients of = rows_backward(in, rules, gradients[0], saved[5], log_sum, {});
    at::Tensor sinks;
    if (in.sinks.defined()) {
      const at::Tensor weight = (in.sinks.to(at::kFloat).view({1, -1, 1}) - log_sum).exp_();
      sinks = weight.mul_(of.delta).sum(at::IntArrayRef{0, 2}).neg_().to(in.sinks.scalar_type());
    }
    return {of.q, of.k, of.v, sinks, {}, {}, {}};
  }

 private:
  static AttentionInput input_of_saved(const ag::variable_list& all, std::int64_t ahead) {
    return input_of(all[0], all[1], all[2], all[4], all[3], ahead);
  }

  static ag::variable_list of_formula(const AttentionInput& in, const AttentionRules& rules, const at::Tensor& gradient) {
    const ag::variable_list all{in.q, in.k, in.v, in.sinks};
    ag::variable_list asked, out(7);
    for (const at::Tensor& each : all) {
      if (each.defined() && each.requires_grad()) {
        asked.push_back(each);
      }
    }
    const ag::variable_list of = ag::grad({plain_attention(in, rules)}, asked, {gradient}, /*retain_graph=*/true, /*create_graph=*/true);
    for (std::size_t i = 0, next = 0; i < all.size(); ++i) {
      if (all[i].defined() && all[i].requires_grad()) {
        out[i] = of[next++];
      }
    }
    return out;
  }
};

}  // namespace

bool takes_rows(const AttentionInput& in, const AttentionRules& rules) {
  const at::ScalarType type = in.q.scalar_type();
  const bool known = in.q.is_cpu() && (type == at::kFloat || type == at::kBFloat16) && in.k.scalar_type() == type &&
                     in.v.scalar_type() == type && in.q.numel() > 0 && in.v.numel() > 0;
  return known && !in.mask.defined() && !in.bias.defined() && !in.drop && rules.scale > 0 &&
         in.k.size(2) < std::numeric_limits<std::int32_t>::max();
}

RowsAttention rows_forward(const AttentionInput& in, const AttentionRules& rules) {
  const Operands operands(in);
  RowsAttention out{
      at::empty({in.q.size(0), in.q.size(2), in.q.size(1), in.v.size(3)}, in.q.options().requires_grad(false)).transpose(1, 2),
      at::empty({in.q.size(0), in.q.size(1), in.q.size(2)}, in.q.options().dtype(at::kFloat).requires_grad(false))};
  AttentionForward rows;
  operands.fill(rows, rules);
  rows.sinks = operands.sinks.defined() ? operands.sinks.const_data_ptr<float>() : nullptr;
  rows.out = head_rows(out.out);
  rows.log_sum = out.log_sum.data_ptr<float>();
  attention_forward(rows);
  return out;
}

RowsGradients rows_backward(const AttentionInput& in, const AttentionRules& rules, const at::Tensor& gradient, const at::Tensor& out,
                            const at::Tensor& log_sum, const at::Tensor& delta) {
  const Operands operands(in);
  const at::Tensor given = rows_whole(gradient), result = rows_whole(out), sums = log_sum.contiguous();
  RowsGradients of{rows_like(operands.q), rows_like(operands.k), rows_like(operands.v),
                   delta.defined() ? delta.contiguous() : at::empty(sums.sizes(), sums.options())};
  AttentionBackward rows;
  operands.fill(rows, rules);
  rows.gradient = head_rows(given);
  if (!delta.defined()) {
    rows.out = head_rows(result);
  }
  rows.log_sum = sums.data_ptr<float>();
  rows.delta = of.delta.data_ptr<float>();
  rows.dq = head_rows(of.q);
  rows.dk = head_rows(of.k);
  rows.dv = head_rows(of.v);
  attention_backward(rows);
  return of;
}

at::Tensor attention_by_rows(const AttentionInput& in, const AttentionRules& rules) {
  return ByRows::apply(in.q, in.k, in.v, given(in.sinks), given(first_of(in)), ahead_of(in), rules);
}

}  // namespace kf
