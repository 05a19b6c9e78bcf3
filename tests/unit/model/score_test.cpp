// What attention does to scores: windows, distances, groups of heads.

#include "model/layer/score.h"

#include <ATen/ATen.h>

#include "model/layer/dropout.h"
#include "support/gradients.h"
#include "support/tiny.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

namespace kf::test {

TEST_CASE("scores: attention's kernel equals the formula with windows, groups of heads and distances", "[attention]") {
  const std::int64_t window = GENERATE(0, 5), alibi = GENERATE(0, 4);
  const at::Tensor q = drawn({2, 4, 12, 8}, 1, at::kFloat), k = drawn({2, 2, 12, 8}, 2, at::kFloat),
                   v = drawn({2, 2, 12, 8}, 3, at::kFloat);
  const auto run = [&](const Kernels& kernels) {
    ScoreOptions options;
    options.rules.scale = 0.3;
    options.kernels = &kernels;
    options.alibi_heads = alibi;
    if (window > 0) {
      options.reach = {Reach::Kind::local, window};
    }
    const Mixer mixer(options, Dropout(0, 1, 0, "scores"));
    const at::Tensor keys = k.clone().requires_grad_();
    const at::Tensor queries = q.clone().requires_grad_(), values = v.clone().requires_grad_();
    const at::Tensor mixed = mixer.mix(queries, keys, values, {}, ForwardContext(), true);
    (mixed * drawn(mixed.sizes(), 5).to(at::kFloat)).sum().backward();
    return std::vector<at::Tensor>{mixed.detach(), queries.grad(), keys.grad(), values.grad()};
  };
  const auto kernel = run(fused_kernels()), formula = run(plain_kernels());
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    CAPTURE(i, window, alibi);
    CHECK(relative_difference(kernel[i], formula[i]) < 2e-5);
  }
}

TEST_CASE("scores: slopes of alibi are those of its paper", "[attention]") {
  CHECK(at::allclose(alibi_slopes(8), at::tensor({0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125, 0.00390625}).to(at::kFloat)));
  // Five heads: those of four, and the first of eight.
  CHECK(at::allclose(alibi_slopes(5), at::tensor({0.25, 0.0625, 0.015625, 0.00390625, 0.5}).to(at::kFloat)));
}

}  // namespace kf::test
