// QK-clip: heads whose scores grow too large get smaller query weights.

#include <ATen/ATen.h>

#include "model/layer/largest_scores.h"
#include "support/tiny.h"

#include <catch2/catch.hpp>

namespace kf::test {

TEST_CASE("qk-clip: the largest score of each head is that of the whole matrix", "[qk_clip]") {
  const at::Tensor q = at::randn({2, 4, 300, 8}, at::detail::createCPUGenerator(1));
  const at::Tensor k = at::randn({2, 2, 300, 8}, at::detail::createCPUGenerator(2));
  const at::Tensor all = q.matmul(k.repeat_interleave(2, 1).transpose(2, 3)) * 0.5;
  const at::Tensor triangle = at::ones({300, 300}, at::kBool).tril();
  const at::Tensor expected = all.masked_fill(triangle.logical_not(), -1e30).amax({0, 2, 3});
  CHECK(relative_difference(largest_scores(q, k, 0.5, {}, true), expected) < 1e-6);
  CHECK(relative_difference(largest_scores(q, k, 0.5, triangle.view({1, 1, 300, 300}), false), expected) < 1e-6);
  CHECK(relative_difference(largest_scores(q, k, 0.5, {}, false), all.amax({0, 2, 3})) < 1e-6);
}

TEST_CASE("qk-clip: after an update only the heads above tau have smaller queries", "[qk_clip]") {
  config::Config config = tiny_config();
  config.optimizer.name = "sgdm";
  config.optimizer.weight_decay = 0;
  config.optimizer.qk_clip = true;
  config.optimizer.qk_clip_tau = 5;
  config.train.grad_accum_steps = 2;
  Bench bench(config);
  FixedLoader data(random_tokens(8, 32, 3), random_tokens(8, 32, 4), 2);
  const auto query = [&] {
    for (const ParameterPtr& parameter : bench.model->parameters()) {
      if (parameter->name == "layers.0.attention.q_proj.weight") {
        return parameter->master.detach();
      }
    }
    return at::Tensor();
  };
  query().narrow(0, 8, 8).mul_(40);  // head 1 of 4, each 8 rows
  const at::Tensor before = query().clone();
  bench.step(data, 0, 0.0);  // rate 0: what moves is the clip
  const at::Tensor ratio = query() / before;
  CHECK(at::equal(query().narrow(0, 0, 8), before.narrow(0, 0, 8)));
  CHECK(at::equal(query().narrow(0, 16, 16), before.narrow(0, 16, 16)));
  const double factor = ratio[8][0].item<double>();
  CHECK(factor < 0.9);
  CHECK(relative_difference(query().narrow(0, 8, 8), before.narrow(0, 8, 8) * factor) < 1e-5);
  const double again = (bench.step(data, 0, 0.0), (query()[8][0] / before[8][0]).item<double>());
  CHECK(again == Approx(factor).epsilon(1e-3));  // the same batches now reach tau and no more
}

}  // namespace kf::test
