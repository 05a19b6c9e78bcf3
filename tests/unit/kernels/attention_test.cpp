// Attention by kernels of our own on a CPU, against the formula in double of the same numbers.

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "kernels/attention/attention.h"
#include "kernels/attention/by_rows.h"
#include "kernels/attention/partial.h"
#include "support/tensor_memory.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

namespace kf::test {
namespace {

struct Shape {
  std::int64_t batch, heads, kv_heads, queries, keys, width, value_width;
};

/// Who is seen, and what is done to scores.
struct Kind {
  const char* seen;  // causal, all, window, chunk, documents
  double softcap;
  bool sinks;
};

at::Tensor normal(const std::vector<std::int64_t>& sizes, std::uint64_t seed, at::ScalarType type) {
  return at::randn(sizes, at::detail::createCPUGenerator(seed), at::TensorOptions(at::kDouble)).to(type);
}

/// As projections make it: (B, T, H, D) in memory.
at::Tensor heads_of(std::int64_t batch, std::int64_t heads, std::int64_t rows, std::int64_t width, std::uint64_t seed,
                    at::ScalarType type) {
  return normal({batch, rows, heads, width}, seed, type).transpose(1, 2);
}

std::shared_ptr<const KeyRanges> ranges_of(const std::string& seen, const Shape& s) {
  const at::Tensor query = at::arange(s.keys - s.queries, s.keys).unsqueeze(0);
  if (seen == "window") {
    return std::make_shared<KeyRanges>((query - 16).clamp_min(0), s.keys);
  }
  if (seen == "chunk") {
    return std::make_shared<KeyRanges>(query - query.remainder(20), s.keys);
  }
  if (seen == "documents") {  // of other lengths in each row
    const at::Tensor lengths = at::arange(7, 7 + s.batch).unsqueeze(1) * 3;
    return std::make_shared<KeyRanges>(query - query.remainder(lengths), s.keys);
  }
  return nullptr;
}

AttentionInput input_of(const Shape& s, const Kind& kind, at::ScalarType type) {
  AttentionInput in;
  in.q = heads_of(s.batch, s.heads, s.queries, s.width, 1, type);
  in.k = heads_of(s.batch, s.kv_heads, s.keys, s.width, 2, type);
  in.v = heads_of(s.batch, s.kv_heads, s.keys, s.value_width, 3, type);
  in.causal = std::string(kind.seen) == "causal";
  in.ranges = ranges_of(kind.seen, s);
  if (kind.sinks) {
    in.sinks = normal({s.heads}, 4, at::kFloat);
  }
  return in;
}

AttentionRules rules_of(const Shape& s, const Kind& kind) {
  AttentionRules rules;
  rules.scale = 1.0 / std::sqrt(static_cast<double>(s.width));
  rules.softcap = kind.softcap;
  return rules;
}

using Attention = at::Tensor (*)(const AttentionInput&, const AttentionRules&);

/// The result and the gradients of q, k, v and, where there are any, sinks.
std::vector<at::Tensor> outcome(Attention attention, AttentionInput in, const AttentionRules& rules, const at::Tensor& gradient) {
  std::vector<at::Tensor> leaves;
  for (at::Tensor* each : {&in.q, &in.k, &in.v, &in.sinks}) {
    if (each->defined()) {
      *each = each->detach().requires_grad_();
      leaves.push_back(*each);
    }
  }
  const at::Tensor out = attention(in, rules);
  std::vector<at::Tensor> all{out.detach()};
  for (const at::Tensor& each : torch::autograd::grad({out}, leaves, {gradient})) {
    all.push_back(each);
  }
  return all;
}

AttentionInput in_double(AttentionInput in) {
  for (at::Tensor* each : {&in.q, &in.k, &in.v, &in.sinks}) {
    *each = each->defined() ? each->to(at::kDouble) : *each;
  }
  return in;
}

/// Of numbers in double: what each result is a sum of, by magnitude, in the order of `outcome`. Rounding moves it by no more than a share.
std::vector<at::Tensor> magnitudes(const AttentionInput& in, const AttentionRules& rules, const at::Tensor& gradient) {
  const std::int64_t keys = in.k.size(2), kv_heads = in.k.size(1);
  AttentionInput weighing = in;
  weighing.v = at::eye(keys, in.q.options()).expand({in.q.size(0), in.q.size(1), keys, keys});
  weighing.k = repeat_heads(in.k, in.q.size(1));
  const at::Tensor weights = plain_attention(weighing, rules);  // (B, H, T, S)
  const auto of_group = [&](const at::Tensor& x) { return x.unflatten(1, {kv_heads, -1}).sum(2); };
  const at::Tensor v = repeat_heads(in.v, in.q.size(1)).abs(), g = gradient.abs();
  const at::Tensor through = at::matmul(g, v.transpose(2, 3));  // |gradients of weights|
  const at::Tensor delta = (weights * through).sum(3, true);
  const at::Tensor inner = weights * (through + delta);
  std::vector<at::Tensor> all{at::matmul(weights, v), at::matmul(inner, weighing.k.abs()) * rules.scale,
                              of_group(at::matmul(inner.transpose(2, 3), in.q.abs())) * rules.scale,
                              of_group(at::matmul(weights.transpose(2, 3), g))};
  if (in.sinks.defined()) {
    all.push_back(((1 - weights.sum(3, true)) * delta).sum(at::IntArrayRef{0, 2, 3}));
  }
  return all;
}

/// The share of those magnitudes that rounding may be: weights move by twice the error of a score (they are a share of a sum), and every
/// number of a sum by half a unit. In bf16 weights and gradients of scores may be rounded before they are summed, and so are the result,
/// from which delta comes, and the gradients.
double share_of(const AttentionInput& in, const AttentionRules& rules) {
  constexpr double kUnit = 0x1p-23;
  const at::Tensor k = repeat_heads(in.k, in.q.size(1));
  const double largest = at::matmul(in.q.abs(), k.abs().transpose(2, 3)).max().item<double>() * rules.scale;
  const double score = kUnit * (largest * static_cast<double>(in.q.size(3) + 2) + 4 * rules.softcap);
  const double sums = kUnit * static_cast<double>(in.k.size(2) + in.q.size(2) * in.q.size(1) + in.v.size(3) + 16);
  return 2 * score + sums;
}
constexpr double kBf16 = 4 * 0x1p-9;

void check(const AttentionInput& in, const AttentionRules& rules, const at::Tensor& gradient) {
  const std::vector<at::Tensor> own = outcome(fused_attention, in, rules, gradient);
  const AttentionInput wide = in_double(in);
  const std::vector<at::Tensor> exact = outcome(plain_attention, wide, rules, gradient.to(at::kDouble));
  const std::vector<at::Tensor> of = magnitudes(wide, rules, gradient.to(at::kDouble));
  const double share = share_of(wide, rules) + (in.q.scalar_type() == at::kBFloat16 ? kBf16 : 0);
  REQUIRE(own.size() == exact.size());
  for (std::size_t i = 0; i < own.size(); ++i) {
    CAPTURE(i, share);
    CHECK(own[i].sizes() == exact[i].sizes());
    CHECK(((own[i].to(at::kDouble) - exact[i]).abs() - of[i] * share).max().item<double>() <= 0);
  }
  CHECK_FALSE(at::equal(own[0].to(at::kDouble), exact[0]));  // else the formula is compared with itself
}

}  // namespace

TEST_CASE("attention by rows: results and gradients are the formula's, whatever the shape and who is seen", "[attention]") {
  const at::ScalarType type = GENERATE(at::kFloat, at::kBFloat16);
  const Shape s = GENERATE(Shape{2, 2, 2, 31, 31, 20, 20}, Shape{2, 4, 2, 33, 33, 8, 8}, Shape{1, 6, 2, 65, 65, 64, 64},
                           Shape{2, 4, 1, 70, 130, 80, 48}, Shape{1, 2, 2, 200, 200, 128, 128}, Shape{2, 8, 2, 5, 40, 33, 7});
  const Kind kind = GENERATE(Kind{"causal", 0, false}, Kind{"all", 3, false}, Kind{"window", 0, true}, Kind{"chunk", 2, true},
                             Kind{"documents", 0, false});
  CAPTURE(type, s.queries, s.width, kind.seen);
  const AttentionInput in = input_of(s, kind, type);
  REQUIRE(takes_rows(in, rules_of(s, kind)));
  check(in, rules_of(s, kind), normal({s.batch, s.heads, s.queries, s.value_width}, 5, type));
}

TEST_CASE("attention by rows: one query sees all keys that a cache holds", "[attention]") {
  const Shape s{2, 8, 2, 1, 100, 64, 64};
  const Kind kind{"all", 0, GENERATE(true, false)};
  check(input_of(s, kind, at::kFloat), rules_of(s, kind), normal({2, 8, 1, 64}, 5, at::kFloat));
}

TEST_CASE("attention by rows: results lie in memory as projections take them, gradients as they gave them", "[attention]") {
  const Shape s{2, 4, 2, 33, 33, 8, 8};
  const Kind kind{"causal", 0, false};
  const std::vector<at::Tensor> own =
      outcome(fused_attention, input_of(s, kind, at::kFloat), rules_of(s, kind), normal({2, 4, 33, 8}, 5, at::kFloat));
  for (const at::Tensor& each : own) {
    CHECK(each.transpose(1, 2).is_contiguous());
  }
}

TEST_CASE("attention by rows: any number of threads gives the same bits", "[attention]") {
  const at::ScalarType type = GENERATE(at::kFloat, at::kBFloat16);
  const Shape s = GENERATE(Shape{1, 2, 1, 300, 300, 40, 40}, Shape{3, 4, 2, 65, 65, 32, 32});
  const Kind kind{"window", 0, true};
  const AttentionInput in = input_of(s, kind, type);
  const at::Tensor gradient = normal({s.batch, s.heads, s.queries, s.value_width}, 5, type);
  const int before = at::get_num_threads();
  std::vector<std::vector<at::Tensor>> all;
  for (const int threads : {1, 3, 8}) {
    at::set_num_threads(threads);
    all.push_back(outcome(fused_attention, in, rules_of(s, kind), gradient));
  }
  at::set_num_threads(before);
  for (std::size_t i = 0; i < all[0].size(); ++i) {
    CAPTURE(i);
    CHECK(at::equal(all[0][i], all[1][i]));
    CHECK(at::equal(all[0][i], all[2][i]));
  }
}

TEST_CASE("attention by rows: numbers that are none reach results and gradients", "[attention]") {
  const Shape s{1, 2, 1, 40, 40, 16, 16};
  const Kind kind{"causal", 0, false};
  AttentionInput in = input_of(s, kind, at::kFloat);
  in.k[0][0][30][3] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<at::Tensor> own = outcome(fused_attention, in, rules_of(s, kind), normal({1, 2, 40, 16}, 5, at::kFloat));
  CHECK_FALSE(own[0].narrow(2, 0, 30).isnan().any().item<bool>());
  CHECK(own[0].narrow(2, 30, 10).isnan().all().item<bool>());
  CHECK(own[1].narrow(2, 30, 10).isnan().all().item<bool>());
}

TEST_CASE("attention by rows: the gradient of a gradient is the formula's", "[attention]") {
  const Shape s{1, 2, 1, 9, 9, 8, 8};
  const Kind kind{"window", 2, true};
  const auto second = [&](Attention attention) {
    AttentionInput in = input_of(s, kind, at::kFloat);
    in.q.requires_grad_();
    const at::Tensor first = torch::autograd::grad({attention(in, rules_of(s, kind)).square().sum()}, {in.q}, {}, true, true)[0];
    return torch::autograd::grad({first.square().sum()}, {in.q})[0];
  };
  const at::Tensor own = second(fused_attention), formula = second(plain_attention);
  CHECK((own - formula).abs().max().item<float>() <= 1e-5 * formula.abs().max().item<float>());  // both in fp32
}

TEST_CASE("attention by rows: parts over some of the keys are joined to what attention over all of them is", "[attention]") {
  const Shape s{1, 4, 2, 64, 64, 16, 16};
  const Kind kind{"causal", 3, false};
  const AttentionRules rules = rules_of(s, kind);
  AttentionInput in = input_of(s, kind, at::kFloat);
  const at::Tensor gradient = normal({1, 4, 64, 16}, 5, at::kFloat);
  const std::vector<at::Tensor> whole = outcome(fused_attention, in, rules, gradient);
  // The second half of the queries, over the first half of the keys and over the second.
  AttentionInput first = in, second = in;
  first.q = second.q = in.q.narrow(2, 32, 32);
  first.causal = false;
  first.k = in.k.narrow(2, 0, 32);
  first.v = in.v.narrow(2, 0, 32);
  second.k = in.k.narrow(2, 32, 32);
  second.v = in.v.narrow(2, 32, 32);
  PartialAttention joined = partial_attention(first, rules, true);
  joined.join(partial_attention(second, rules, true));
  CHECK((joined.out - whole[0].narrow(2, 32, 32)).abs().max().item<float>() <= 1e-5);  // of numbers below 4: 20 units
  const at::Tensor own = gradient.narrow(2, 32, 32), delta = (own * joined.out).sum(3);
  const PartialGradients a = partial_backward(first, rules, true, own, joined.out, joined.log_sum, delta);
  const PartialGradients b = partial_backward(second, rules, true, own, joined.out, joined.log_sum, delta);
  CHECK((a.q + b.q - whole[1].narrow(2, 32, 32)).abs().max().item<float>() <= 1e-5);
  CHECK((b.k - whole[2].narrow(2, 32, 32)).abs().max().item<float>() <= 1e-4);  // sums over two heads of 32 queries
  CHECK((b.v - whole[3].narrow(2, 32, 32)).abs().max().item<float>() <= 1e-4);
  const PartialGradients formula = partial_backward(first, rules, false, own, joined.out, joined.log_sum, delta);
  CHECK((a.k - formula.k).abs().max().item<float>() <= 1e-4);
  CHECK((a.v - formula.v).abs().max().item<float>() <= 1e-4);
}

TEST_CASE("attention by rows: parts of windows, chunks and documents are joined, where some queries see nothing of a part", "[attention]") {
  const Shape s{2, 4, 2, 64, 64, 16, 16};
  const Kind kind{GENERATE("window", "chunk", "documents"), 0, false};
  CAPTURE(kind.seen);
  const AttentionRules rules = rules_of(s, kind);
  const AttentionInput in = input_of(s, kind, at::kFloat);
  const at::Tensor gradient = normal({2, 4, 64, 16}, 5, at::kFloat), begins = in.ranges->first().narrow(1, 32, 32);
  const std::vector<at::Tensor> whole = outcome(fused_attention, in, rules, gradient);
  AttentionInput first = in, second = in;  // the second half of the queries, over each half of the keys
  first.q = second.q = in.q.narrow(2, 32, 32);
  first.k = in.k.narrow(2, 0, 32);
  first.v = in.v.narrow(2, 0, 32);
  first.ranges = std::make_shared<KeyRanges>(begins.clamp_max(32), 32, 32);
  second.k = in.k.narrow(2, 32, 32);
  second.v = in.v.narrow(2, 32, 32);
  second.ranges = std::make_shared<KeyRanges>((begins - 32).clamp_min(0), 32, 0);
  REQUIRE(takes_rows(first, rules));
  REQUIRE(takes_rows(second, rules));
  PartialAttention joined = partial_attention(first, rules, true);
  CHECK(joined.log_sum.isinf().any().item<bool>());
  CHECK_FALSE(joined.log_sum.isinf().all().item<bool>());
  joined.join(partial_attention(second, rules, true));
  CHECK((joined.out - whole[0].narrow(2, 32, 32)).abs().max().item<float>() <= 1e-5);
  const at::Tensor own = gradient.narrow(2, 32, 32), delta = (own * joined.out).sum(3);
  PartialGradients sum;
  for (const AttentionInput& part : {first, second}) {
    const PartialGradients a = partial_backward(part, rules, true, own, joined.out, joined.log_sum, delta);
    const PartialGradients formula = partial_backward(part, rules, false, own, joined.out, joined.log_sum, delta);
    CHECK((a.q - formula.q).abs().max().item<float>() <= 1e-5);
    CHECK((a.k - formula.k).abs().max().item<float>() <= 1e-4);
    CHECK((a.v - formula.v).abs().max().item<float>() <= 1e-4);
    sum.q = sum.q.defined() ? sum.q + a.q : a.q;
    sum.k = a.k;
  }
  CHECK((sum.q - whole[1].narrow(2, 32, 32)).abs().max().item<float>() <= 1e-5);
  CHECK((sum.k - whole[2].narrow(2, 32, 32)).abs().max().item<float>() <= 1e-4);  // only these queries see these keys
  const AttentionInput late = [&] {                                               // through autograd, whose backward must see the same keys
    AttentionInput out = first;
    out.ranges = std::make_shared<KeyRanges>(begins.clamp_max(16), 32, 32);
    return out;
  }();
  const std::vector<at::Tensor> rows = outcome(fused_attention, late, rules, own), formula = outcome(plain_attention, late, rules, own);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CHECK((rows[i] - formula[i]).abs().max().item<float>() <= 1e-4);
  }
}

TEST_CASE("attention by rows: memory does not grow with the number of scores", "[attention]") {
  const auto memory = std::make_shared<TensorMemory>();
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, memory);
  const auto beyond_results = [&](std::int64_t length) {
    const Shape s{1, 2, 1, length, length, 16, 16};
    const Kind kind{"causal", 0, false};
    const AttentionInput in = input_of(s, kind, at::kBFloat16);
    const at::Tensor gradient = normal({1, 2, length, 16}, 5, at::kBFloat16);
    memory->reset();
    const double before = memory->now();
    const std::vector<at::Tensor> own = outcome(fused_attention, in, rules_of(s, kind), gradient);
    const auto rows = static_cast<double>(2 * length);
    return memory->most() - before - rows * (3 * 16 * 2 + 2 * 4);  // out, dq, dk and dv, log sums and delta
  };
  // Sums of gradients of keys in fp32, per key and thread: 2 * 32 numbers, twice that for whole vectors. Scores would be 16 MB at 2048.
  const double threads = at::get_num_threads();
  CHECK(beyond_results(2048) <= beyond_results(256) + threads * 2048 * 2 * 32 * 4 + 4096);
}

}  // namespace kf::test
