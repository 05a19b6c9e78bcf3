// Ring attention: forward and backward each go round the ranks once.

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <utility>
#include <vector>

#include "kernels/attention/partial.h"
#include "model/layer/sequence_attention.h"
#include "parallel/group.h"

namespace kf {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

/// What of an attention is no tensor of the graph.
struct Ring : torch::CustomClassHolder {
  Ring(std::shared_ptr<const Visibility> who, SequenceScores how)
      : visible(std::move(who)), scores(std::move(how)), fused(scores.kernels->attention == fused_kernels().attention) {}
  std::shared_ptr<const Visibility> visible;
  SequenceScores scores;
  bool fused;

  const SequencePart& part() const { return *visible->part(); }
  Group& group() const { return *part().ranks; }
  std::int64_t size() const { return group().size(); }
  /// Whose keys are here after `step` hops.
  std::int64_t from(std::int64_t step) const { return (group().rank() - step + size()) % size(); }

  /// A tensor (B, H, T of the rank `from(step)`, ..) on its way: to the next rank, and what comes from the one before in its place.
  struct Hop {
    at::Tensor came;
    Pending sent, received;
    at::Tensor wait() {
      received.wait();
      sent.wait();
      return came;
    }
  };
  Hop hop(const at::Tensor& here, std::int64_t step) const {
    std::vector<std::int64_t> shape = here.sizes().vec();
    shape[2] = part().cut.rows()[static_cast<std::size_t>(from(step + 1))];
    Hop out;
    out.came = at::empty(shape, here.options());
    out.sent = group().begin_send(here, (group().rank() + 1) % size());
    out.received = group().begin_receive(out.came, (group().rank() - 1 + size()) % size());
    return out;
  }

  /// Calls visit(sight, my piece's number, first row and span, the keys' first row and span) for each block of the keys of a rank that is
  /// seen here.
  template <class Visit>
  void each_block(std::int64_t rank, const Visit& visit) const {
    std::int64_t row = 0;
    for (std::size_t mine = 0; mine < part().pieces().size(); ++mine) {
      const Span& queries = part().pieces()[mine];
      std::int64_t key_row = 0;
      for (const Span& keys : part().cut.pieces(rank)) {
        if (const Sight sight = visible->between(scores.reach, queries, keys); sight.kind != Sight::Kind::none) {
          visit(sight, mine, row, queries, key_row, keys);
        }
        key_row += keys.size;
      }
      row += queries.size;
    }
  }
};

struct RingFunction : torch::autograd::Function<RingFunction> {
  /// `sinks` is empty for none.
  static Variable forward(AutogradContext* context, const Variable& q, const Variable& k, const Variable& v, const Variable& sinks,
                          const c10::intrusive_ptr<Ring>& ring) {
    const std::int64_t width = k.size(3);
    std::vector<PartialAttention> sums(ring->part().pieces().size());
    at::Tensor here = at::cat({k, v}, 3);  // (B, Hkv, T, D + Dv)
    for (std::int64_t step = 0; step < ring->size(); ++step) {
      const bool more = step + 1 < ring->size();
      Ring::Hop hop;
      if (more) {
        hop = ring->hop(here, step);
      }
      ring->each_block(ring->from(step), [&](const Sight& sight, std::size_t mine, std::int64_t row, const Span& queries,
                                             std::int64_t key_row, const Span& keys) {
        const at::Tensor both = here.narrow(2, key_row, keys.size);
        const AttentionInput in = block_input(q.narrow(2, row, queries.size), both.narrow(3, 0, width),
                                              both.narrow(3, width, both.size(3) - width), sight, ring->scores, queries, keys);
        sums[mine].join(partial_attention(in, ring->scores.rules, ring->fused));
      });
      if (more) {
        here = hop.wait();
      }
    }
    std::vector<at::Tensor> out, log_sums;
    for (PartialAttention& sum : sums) {
      if (sinks.numel() > 0) {
        sum.join_sinks(sinks);
      }
      out.push_back(sum.out);
      log_sums.push_back(sum.log_sum);
    }
    at::Tensor result = at::cat(out, 2).to(q.scalar_type());
    context->save_for_backward({q, k, v, sinks, result, at::cat(log_sums, 2)});
    context->saved_data["ring"] = c10::IValue::make_capsule(ring);
    return result;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const auto ring = c10::static_intrusive_pointer_cast<Ring>(context->saved_data["ring"].toCapsule());
    const at::Tensor &q = saved[0], &k = saved[1], &sinks = saved[3], &out = saved[4], &log_sum = saved[5];
    const at::Tensor gradient = gradients[0].to(q.scalar_type());
    const at::Tensor delta = (gradient.to(at::kFloat) * out.to(at::kFloat)).sum(-1);  // (B, H, T)
    const std::int64_t width = k.size(3);
    const at::Tensor dq = at::zeros(q.sizes(), q.options().dtype(at::kFloat));
    at::Tensor here = at::cat({k, saved[2]}, 3);
    at::Tensor came = at::zeros(here.sizes(), here.options().dtype(at::kFloat));  // gradients of the keys and values that are here
    Ring::Hop gradient_hop;
    for (std::int64_t step = 0; step < ring->size(); ++step) {
      Ring::Hop hop;
      if (step + 1 < ring->size()) {
        hop = ring->hop(here, step);
      }
      const at::Tensor own = at::zeros(here.sizes(), came.options());
      ring->each_block(ring->from(step), [&](const Sight& sight, std::size_t, std::int64_t row, const Span& queries, std::int64_t key_row,
                                             const Span& keys) {
        const auto mine = [&](const at::Tensor& x) { return x.narrow(2, row, queries.size); };
        const at::Tensor both = here.narrow(2, key_row, keys.size);
        const AttentionInput in =
            block_input(mine(q), both.narrow(3, 0, width), both.narrow(3, width, both.size(3) - width), sight, ring->scores, queries, keys);
        const PartialGradients part =
            partial_backward(in, ring->scores.rules, ring->fused, mine(gradient), mine(out), mine(log_sum), mine(delta));
        mine(dq).add_(part.q);
        own.narrow(2, key_row, keys.size).add_(at::cat({part.k, part.v}, 3));
      });
      if (step > 0) {
        came = gradient_hop.wait();
      }
      came.add_(own);
      gradient_hop = ring->hop(came, step);  // after the last one they are at home
      if (step + 1 < ring->size()) {
        here = hop.wait();
      }
    }
    came = gradient_hop.wait().to(k.scalar_type());
    at::Tensor dsinks;
    if (sinks.numel() > 0) {
      dsinks = ((sinks.to(at::kFloat).view({1, -1, 1}) - log_sum).exp() * delta).sum(at::IntArrayRef{0, 2}).neg().to(sinks.scalar_type());
    }
    return {dq.to(q.scalar_type()), came.narrow(3, 0, width), came.narrow(3, width, came.size(3) - width), dsinks, Variable()};
  }
};

}  // namespace

at::Tensor attend_ring(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const std::shared_ptr<const Visibility>& visible,
                       const SequenceScores& scores) {
  const at::Tensor sinks = scores.sinks.defined() ? scores.sinks : at::empty({0}, q.options().requires_grad(false));
  return RingFunction::apply(q, k, v, sinks, c10::make_intrusive<Ring>(visible, scores));
}

}  // namespace kf
