#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "kernels/attention/rows.h"
#include "kernels/product/product.h"
#include "kernels/product/stacked.h"
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
    in.x = in.q = in.k = in.v = in.out = at::Tensor();
    in.first = in.first.defined() ? in.first.contiguous() : in.first;
  }
  SelfAttentionInput in;
  Sizes sizes;
};

/// What a forward makes, and is let go behind this node's backward.
struct Made {
  at::Tensor qkv;      // (N, (H + 2 Hkv) D), turned
  at::Tensor mixed;    // (N, H D)
  at::Tensor log_sum;  // (B, H, T) fp32
};

/// q and k in place.
void turn(const at::Tensor& qkv, const Kept& kept, bool back) {
  if (!kept.in.cos.defined()) {
    return;
  }
  const Sizes& s = kept.sizes;
  const simd::HeadStrides strides{s.positions * s.width(), s.head_dim, s.width()};
  void* const data = qkv.mutable_data_ptr();
  const std::int64_t turned = 2 * kept.in.cos.size(-1), heads = s.heads + s.kv_heads;
  const simd::HeadRotation of{data,
                              data,
                              strides,
                              strides,
                              kept.in.cos.const_data_ptr<float>(),
                              kept.in.sin.const_data_ptr<float>(),
                              0,
                              kept.in.cos.stride(0),
                              heads,
                              s.positions,
                              s.head_dim,
                              turned,
                              kept.in.interleaved,
                              back,
                              simd::is_bf16(qkv)};
  static const auto kernel = KF_SIMD_PICK(rotate_heads);
  constexpr std::int64_t kGrain = 32768;  // numbers that are worth a thread
  simd::share(s.batches * s.positions, std::max<std::int64_t>(1, kGrain / (heads * s.head_dim)),
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
  rows.q = heads_at(made.qkv, s, 0);
  rows.k = heads_at(made.qkv, s, s.heads);
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

/// All three as one matrix: one product then, too, where they lie apart, so that the bits are those of weights that do not.
at::Tensor whole_of(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  const at::Tensor whole = stacked({q, k, v});
  return whole.defined() ? whole : at::cat({q, k, v});
}

struct SelfAttentionNode : torch::autograd::Function<SelfAttentionNode> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const at::Tensor& out, const c10::intrusive_ptr<Kept>& kept) {
    const Sizes& s = kept->sizes;
    const Made made{product_nt(x, whole_of(q, k, v)), at::empty({x.size(0), s.heads * s.head_dim}, x.options()),
                    at::empty({s.batches, s.heads, s.positions}, x.options().dtype(at::kFloat))};
    turn(made.qkv, *kept, false);
    AttentionForward rows;
    describe(rows, *kept, made);
    rows.out = heads_at(made.mixed, s, 0);
    attention_forward(rows);
    context->save_for_backward({x, q, k, v, out, made.qkv, made.mixed, made.log_sum});
    context->saved_data["kept"] = c10::IValue::make_capsule(kept);
    return product_nt(made.mixed, out);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const auto kept = c10::static_intrusive_pointer_cast<Kept>(context->saved_data["kept"].toCapsule());
    const at::Tensor &x = saved[0], &q = saved[1], &k = saved[2], &v = saved[3], &out = saved[4];
    const Made made{saved[5], saved[6], saved[7]};
    const at::Tensor gradient = gradients[0].contiguous();
    variable_list found(6);
    if (context->needs_input_grad(4)) {
      found[4] = product_tn(gradient, made.mixed);
    }
    const at::Tensor d_qkv = backward_of_products(*kept, made, product_nn(gradient, out));
    const std::vector<std::int64_t> rows{q.size(0), k.size(0), v.size(0)};
    if (context->needs_input_grad(0)) {
      found[0] = product_nn(d_qkv, whole_of(q, k, v));
    }
    if (context->needs_input_grad(1) || context->needs_input_grad(2) || context->needs_input_grad(3)) {
      const variable_list parts = product_tn(d_qkv, x).split_with_sizes(rows);
      std::copy(parts.begin(), parts.end(), found.begin() + 1);
    }
    return found;
  }

  /// The gradient of what was mixed -> that of x W^T of all three.
  static at::Tensor backward_of_products(const Kept& kept, const Made& made, const at::Tensor& d_mixed) {
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
};

}  // namespace

at::Tensor fused_self_attention(const SelfAttentionInput& in) {
  const at::ScalarType type = in.x.scalar_type();
  for (const at::Tensor* weight : {&in.q, &in.k, &in.v, &in.out}) {
    if (!simd::takes(*weight) || weight->scalar_type() != type) {
      return {};
    }
  }
  if (!simd::takes(in.x)) {
    return {};
  }
  const Sizes sizes{in.x.size(0), in.x.size(1), in.q.size(0) / in.head_dim, in.k.size(0) / in.head_dim, in.head_dim};
  const at::Tensor y =
      SelfAttentionNode::apply(in.x.reshape({-1, in.x.size(2)}), in.q, in.k, in.v, in.out, c10::make_intrusive<Kept>(in, sizes));
  return y.view({in.x.size(0), in.x.size(1), in.out.size(0)});
}

}  // namespace kf
