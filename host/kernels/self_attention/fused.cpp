#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "kernels/attention/attention.h"
#include "kernels/attention/rows.h"
#include "kernels/product/formula_gradients.h"
#include "kernels/product/product.h"
#include "kernels/product/stacked.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/rms_norm/rms_norm_rows.h"
#include "kernels/rms_norm/row_norm.h"
#include "kernels/rotation/rotation.h"
#include "kernels/rotation/rotation_rows.h"
#include "kernels/self_attention/self_attention.h"
#include "kernels/simd/tensor_rows.h"
#include "kernels/simd/threads.h"

namespace kf {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Sizes {
  std::int64_t batches = 0, positions = 0, heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t width() const { return (heads + 2 * kv_heads) * head_dim; }  // of a row of q, k and v
};

/// What is kept of the input beside its tensors of the graph.
struct Kept : torch::CustomClassHolder {
  Kept(SelfAttentionInput input, Sizes of) : in(std::move(input)), sizes(of) {
    in.x = in.q = in.k = in.v = in.out = in.norms.q = in.norms.k = at::Tensor();
    in.first = in.first.defined() ? in.first.contiguous() : in.first;
  }
  SelfAttentionInput in;
  Sizes sizes;
};

/// What a forward makes, and is let go behind this node's backward.
struct Made {
  at::Tensor qkv;      // (N, (H + 2 Hkv) D); turned, where there are no norms
  at::Tensor qk;       // (N, at least (H + Hkv) D), normed and turned
  at::Tensor mixed;    // (N, H D)
  at::Tensor log_sum;  // (B, H, T) fp32
};

constexpr std::int64_t kGrain = 32768;  // numbers that are worth a thread

/// Of q and k in place, which begin the rows of `qk`.
simd::HeadRotation rotation_of(const at::Tensor& qk, const Kept& kept, bool back) {
  const Sizes& s = kept.sizes;
  const simd::HeadStrides strides{s.positions * qk.size(1), s.head_dim, qk.size(1)};
  void* const data = qk.mutable_data_ptr();
  return {data,
          data,
          strides,
          strides,
          kept.in.cos.const_data_ptr<float>(),
          kept.in.sin.const_data_ptr<float>(),
          0,
          kept.in.cos.stride(0),
          s.heads + s.kv_heads,
          s.positions,
          s.head_dim,
          2 * kept.in.cos.size(-1),
          kept.in.interleaved,
          back,
          simd::is_bf16(qk)};
}

void turn(const at::Tensor& qk, const Kept& kept, bool back) {
  if (!kept.in.cos.defined()) {
    return;
  }
  const Sizes& s = kept.sizes;
  const simd::HeadRotation of = rotation_of(qk, kept, back);
  static const auto kernel = KF_SIMD_PICK(rotate_heads);
  simd::share(s.batches * s.positions, std::max<std::int64_t>(1, kGrain / (of.heads * s.head_dim)),
              [&](std::int64_t first, std::int64_t end, int /*thread*/) { kernel(of, first, end); });
}

HeadRows heads_at(const at::Tensor& rows, const Sizes& s, std::int64_t head) {
  const std::int64_t width = rows.size(1);
  char* const data = static_cast<char*>(rows.mutable_data_ptr());
  return {data + head * s.head_dim * static_cast<std::int64_t>(rows.element_size()), s.positions * width, s.head_dim, width};
}

/// What forward and backward have in common.
void describe(AttentionRows& rows, const Kept& kept, const Made& made) {
  const Sizes& s = kept.sizes;
  rows.q = heads_at(made.qk, s, 0);
  rows.k = heads_at(made.qk, s, s.heads);
  rows.v = heads_at(made.qkv, s, s.heads + s.kv_heads);
  rows.bf16 = simd::is_bf16(made.qkv);
  rows.batches = s.batches;
  rows.heads = s.heads;
  rows.kv_heads = s.kv_heads;
  rows.queries = rows.keys = s.positions;
  rows.width = rows.value_width = s.head_dim;
  if (kept.in.first.defined()) {
    rows.first = kept.in.first.const_data_ptr<std::int64_t>();
    rows.first_batch = kept.in.first.size(0) > 1 ? s.positions : 0;
  }
  rows.scale = static_cast<float>(kept.in.scale);
  rows.softcap = static_cast<float>(kept.in.softcap);
  rows.log_sum = made.log_sum.mutable_data_ptr<float>();
}

/// The heads of q (0) or of k (1), as rows.
struct Heads {
  std::int64_t first, count;  // of all heads
  at::Tensor factor;          // (D) fp32, or undefined

  simd::Rows rows(const at::Tensor& all, std::int64_t width) const {
    char* const data = static_cast<char*>(all.mutable_data_ptr());
    return {data + first * width * static_cast<std::int64_t>(all.element_size()), count, all.size(1), width};
  }
  const float* factors() const { return factor.defined() ? factor.const_data_ptr<float>() : nullptr; }
};

Heads heads_of(const Sizes& s, bool keys, const at::Tensor& factor) {
  const at::Tensor wide = factor.defined() ? factor.to(at::kFloat).contiguous() : factor;
  return keys ? Heads{s.heads, s.kv_heads, wide} : Heads{0, s.heads, wide};
}

/// q and k of `qkv`, normed and turned, and for each head of q, then of k, 1 / rms.
std::pair<at::Tensor, at::Tensor> normed_and_turned(const at::Tensor& qkv, const Kept& kept, const Heads& q, const Heads& k) {
  const Sizes& s = kept.sizes;
  const std::int64_t rows = qkv.size(0);
  const at::Tensor out = at::empty({rows, (s.heads + s.kv_heads) * s.head_dim}, qkv.options());
  const at::Tensor inverse = at::empty({rows * (s.heads + s.kv_heads)}, qkv.options().dtype(at::kFloat));
  const auto norm_of = [&](const Heads& heads, std::int64_t before) {
    return simd::NormForward{heads.rows(qkv, s.head_dim),
                             {},
                             {},
                             heads.rows(out, s.head_dim),
                             inverse.mutable_data_ptr<float>() + rows * before,
                             heads.factors(),
                             s.head_dim,
                             static_cast<float>(kept.in.norms.eps),
                             simd::is_bf16(qkv)};
  };
  const simd::NormForward of_q = norm_of(q, 0), of_k = norm_of(k, s.heads);
  const bool turns = kept.in.cos.defined();
  const simd::HeadRotation rotation = turns ? rotation_of(out, kept, false) : simd::HeadRotation();
  static const auto norm = KF_SIMD_PICK(norm_forward);
  static const auto rotate = KF_SIMD_PICK(rotate_heads);
  constexpr std::int64_t kTogether = 8;  // positions, which stay in the nearest cache from one to the other
  simd::share(rows, std::max<std::int64_t>(1, kGrain / out.size(1)), [&](std::int64_t first, std::int64_t end, int /*thread*/) {
    for (std::int64_t at = first; at < end; at += kTogether) {
      const std::int64_t last = std::min(at + kTogether, end);
      norm(of_q, at * s.heads, last * s.heads);
      norm(of_k, at * s.kv_heads, last * s.kv_heads);
      if (turns) {
        rotate(rotation, at, last);
      }
    }
  });
  return {out, inverse};
}

/// The gradient of normed heads becomes that of the heads themselves, in place: they lie in `d_qkv` as they do in `qkv`. Returns that of
/// the factor where it is wanted.
at::Tensor norm_backward_in_place(const at::Tensor& d_qkv, const at::Tensor& qkv, const float* inverse, const Heads& heads,
                                  std::int64_t head_dim, bool wants_factor) {
  const std::int64_t rows = qkv.size(0) * heads.count;
  const std::int64_t blocks = (rows + simd::kNormBlock - 1) / simd::kNormBlock;
  const at::Tensor sums = wants_factor ? at::empty({blocks, head_dim}, qkv.options().dtype(at::kFloat)) : at::Tensor();
  const simd::Rows gradient = heads.rows(d_qkv, head_dim);
  const simd::NormBackward of{heads.rows(qkv, head_dim),
                              gradient,
                              {},
                              gradient,
                              inverse,
                              heads.factors(),
                              wants_factor ? sums.mutable_data_ptr<float>() : nullptr,
                              head_dim,
                              rows,
                              simd::is_bf16(qkv)};
  static const auto kernel = KF_SIMD_PICK(norm_backward);
  simd::share(blocks, std::max<std::int64_t>(1, kGrain / (head_dim * simd::kNormBlock)),
              [&](std::int64_t first, std::int64_t end, int /*thread*/) { kernel(of, first, end); });
  return wants_factor ? sum_of_rows(sums) : at::Tensor();
}

/// All three as one matrix: one product then, too, where they lie apart, so that the bits are those of weights that do not.
at::Tensor whole_of(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  const at::Tensor whole = stacked({q, k, v});
  return whole.defined() ? whole : at::cat({q, k, v});
}

using Factor = std::optional<at::Tensor>;  // a function of the graph refuses undefined tensors

Factor given(const at::Tensor& factor) { return factor.defined() ? Factor(factor) : std::nullopt; }

/// In their places, of x, the weights, the factors and what is kept.
enum Input : std::size_t { kX, kQ, kK, kV, kOut, kQFactor, kKFactor, kKept, kInputs };

/// (N, C'), by operators that can be differentiated again.
at::Tensor formula(const Kept& kept, const variable_list& of) {
  const Sizes& s = kept.sizes;
  const auto heads = [&](const at::Tensor& weight, std::int64_t count) {
    return at::linear(of[kX], weight).view({s.batches, s.positions, count, s.head_dim}).transpose(1, 2);
  };
  const auto turned = [&](at::Tensor x, const at::Tensor& factor) {
    x = kept.in.norms.on ? plain_rms_norm(x, factor, kept.in.norms.eps) : x;
    return kept.in.cos.defined() ? plain_rotation(x, kept.in.cos, kept.in.sin, kept.in.interleaved) : x;
  };
  AttentionInput in;
  in.q = turned(heads(of[kQ], s.heads), of[kQFactor]);
  in.k = turned(heads(of[kK], s.kv_heads), of[kKFactor]);
  in.v = heads(of[kV], s.kv_heads);
  in.causal = !kept.in.first.defined();
  in.ranges = in.causal ? nullptr : std::make_shared<const KeyRanges>(kept.in.first, s.positions);
  AttentionRules rules;
  rules.scale = kept.in.scale;
  rules.softcap = kept.in.softcap;
  const at::Tensor mixed = plain_attention(in, rules).to(of[kX].scalar_type());
  return at::linear(mixed.transpose(1, 2).reshape({-1, s.heads * s.head_dim}), of[kOut]);
}

struct SelfAttentionNode : torch::autograd::Function<SelfAttentionNode> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const at::Tensor& out, const Factor& q_factor, const Factor& k_factor, const c10::intrusive_ptr<Kept>& kept) {
    const Sizes& s = kept->sizes;
    const at::Tensor of_q = q_factor.value_or(at::Tensor()), of_k = k_factor.value_or(at::Tensor());
    Made made{product_nt(x, whole_of(q, k, v)),
              {},
              at::empty({x.size(0), s.heads * s.head_dim}, x.options()),
              at::empty({s.batches, s.heads, s.positions}, x.options().dtype(at::kFloat))};
    if (kept->in.norms.on) {
      made.qk = normed_and_turned(made.qkv, *kept, heads_of(s, false, of_q), heads_of(s, true, of_k)).first;
    } else {
      made.qk = made.qkv;
      turn(made.qk, *kept, false);
    }
    AttentionForward rows;
    describe(rows, *kept, made);
    rows.out = heads_at(made.mixed, s, 0);
    attention_forward(rows);
    context->save_for_backward({x, q, k, v, out, of_q, of_k, made.qkv, made.mixed, made.log_sum});
    context->saved_data["kept"] = c10::IValue::make_capsule(kept);
    return product_nt(made.mixed, out);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const auto kept = c10::static_intrusive_pointer_cast<Kept>(context->saved_data["kept"].toCapsule());
    const at::Tensor &x = saved[kX], &q = saved[kQ], &k = saved[kK], &v = saved[kV], &out = saved[kOut];
    if (at::GradMode::is_enabled()) {  // a gradient of the gradient is asked for
      return backward_by_formula(*kept, saved, gradients[0]);
    }
    Made made{saved[7], saved[7], saved[8], saved[9]};
    const at::Tensor gradient = gradients[0].contiguous();
    variable_list found(kInputs);
    if (context->needs_input_grad(kOut)) {
      found[kOut] = product_tn(gradient, made.mixed);
    }
    const at::Tensor d_mixed = product_nn(gradient, out);
    const at::Tensor d_qkv = kept->in.norms.on
                                 ? backward_with_norms(*context, *kept, made, {saved[kQFactor], saved[kKFactor]}, d_mixed, found)
                                 : backward_of_heads(*kept, made, d_mixed);
    const std::vector<std::int64_t> rows{q.size(0), k.size(0), v.size(0)};
    if (context->needs_input_grad(kX)) {
      found[kX] = product_nn(d_qkv, whole_of(q, k, v));
    }
    if (context->needs_input_grad(kQ) || context->needs_input_grad(kK) || context->needs_input_grad(kV)) {
      const variable_list parts = product_tn(d_qkv, x).split_with_sizes(rows);
      std::copy(parts.begin(), parts.end(), found.begin() + kQ);
    }
    return found;
  }

  /// Gradients that can be differentiated again; of inputs that are there, in their places.
  static variable_list backward_by_formula(const Kept& kept, const variable_list& saved, const at::Tensor& gradient) {
    const variable_list inputs(saved.begin(), saved.begin() + kKept);
    variable_list out = formula_gradients(formula(kept, inputs), inputs, gradient);
    out.resize(kInputs);
    return out;
  }

  /// The gradient of what was mixed -> that of the heads of all three as they were before they turned.
  static at::Tensor backward_of_heads(const Kept& kept, const Made& made, const at::Tensor& d_mixed) {
    const Sizes& s = kept.sizes;
    at::Tensor d_qkv = at::empty_like(made.qkv);
    const at::Tensor delta = at::empty_like(made.log_sum);
    AttentionBackward rows;
    describe(rows, kept, made);
    rows.gradient = heads_at(d_mixed, s, 0);
    rows.out = heads_at(made.mixed, s, 0);
    rows.delta = delta.mutable_data_ptr<float>();
    rows.dq = heads_at(d_qkv, s, 0);
    rows.dk = heads_at(d_qkv, s, s.heads);
    rows.dv = heads_at(d_qkv, s, s.heads + s.kv_heads);
    attention_backward(rows);
    turn(d_qkv, kept, true);
    return d_qkv;
  }

  /// The same through the norms, which are made again; the factors' gradients go into `found`.
  static at::Tensor backward_with_norms(AutogradContext& context, const Kept& kept, Made& made,
                                        const std::pair<at::Tensor, at::Tensor>& factors, const at::Tensor& d_mixed, variable_list& found) {
    const Sizes& s = kept.sizes;
    const Heads q = heads_of(s, false, factors.first), k = heads_of(s, true, factors.second);
    at::Tensor inverse;
    std::tie(made.qk, inverse) = normed_and_turned(made.qkv, kept, q, k);
    at::Tensor d_qkv = backward_of_heads(kept, made, d_mixed);
    made.qk = at::Tensor();
    // Inputs that are not there are not counted.
    const std::size_t k_place = kQFactor + (factors.first.defined() ? 1 : 0);
    const bool wants_q = factors.first.defined() && context.needs_input_grad(kQFactor);
    const bool wants_k = factors.second.defined() && context.needs_input_grad(k_place);
    const auto* const each = inverse.const_data_ptr<float>();
    const at::Tensor for_q = norm_backward_in_place(d_qkv, made.qkv, each, q, s.head_dim, wants_q);
    const at::Tensor for_k = norm_backward_in_place(d_qkv, made.qkv, each + made.qkv.size(0) * s.heads, k, s.head_dim, wants_k);
    found[kQFactor] = wants_q ? for_q.to(factors.first.scalar_type()) : for_q;
    found[kKFactor] = wants_k ? for_k.to(factors.second.scalar_type()) : for_k;
    return d_qkv;
  }
};

/// Whether norms by rows take these factors.
bool fits(const HeadNorms& norms, std::int64_t head_dim) {
  const auto takes = [head_dim](const at::Tensor& factor) {
    return !factor.defined() || (simd::takes(factor) && factor.dim() == 1 && factor.size(0) == head_dim);
  };
  return !norms.on || (takes(norms.q) && takes(norms.k));
}

}  // namespace

at::Tensor fused_self_attention(const SelfAttentionInput& in) {
  const at::ScalarType type = in.x.scalar_type();
  for (const at::Tensor* weight : {&in.q, &in.k, &in.v, &in.out}) {
    if (!simd::takes(*weight) || weight->scalar_type() != type) {
      return {};
    }
  }
  if (!simd::takes(in.x) || !fits(in.norms, in.head_dim)) {
    return {};
  }
  const Sizes sizes{in.x.size(0), in.x.size(1), in.q.size(0) / in.head_dim, in.k.size(0) / in.head_dim, in.head_dim};
  const at::Tensor y = SelfAttentionNode::apply(in.x.reshape({-1, in.x.size(2)}), in.q, in.k, in.v, in.out, given(in.norms.q),
                                                given(in.norms.k), c10::make_intrusive<Kept>(in, sizes));
  return y.view({in.x.size(0), in.x.size(1), in.out.size(0)});
}

}  // namespace kf
