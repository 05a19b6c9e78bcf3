#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "support/tiny.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

using namespace kf;
using namespace kf::test;

TEST_CASE("attention: no position sees a later one", "[attention]") {
  const auto model = tiny_model(tiny_config());
  const at::Tensor tokens = random_tokens(1, 16, 3);
  at::Tensor changed = tokens.clone();
  changed[0][10] = (tokens[0][10].item<std::int64_t>() + 1) % 97;
  const at::Tensor before = logits_of(*model, tokens);
  const at::Tensor after = logits_of(*model, changed);
  CHECK(before.narrow(1, 0, 10).equal(after.narrow(1, 0, 10)));
  CHECK(!before.narrow(1, 10, 6).equal(after.narrow(1, 10, 6)));
}

TEST_CASE("attention: a document does not see another one in its row, to the last bit", "[attention][packing]") {
  config::Config config = tiny_config();
  config.model.qk_norm = GENERATE(false, true);
  const auto model = tiny_model(config);
  const at::Tensor tokens = at::tensor({7, 8, 9, 0, 5, 6, 0}, at::kLong).unsqueeze(0);
  const at::Tensor docs = at::tensor({0, 0, 0, 0, 1, 1, 1}, at::kLong).unsqueeze(0);
  at::Tensor changed = tokens.clone();
  changed[0][0] = 11;
  const at::Tensor before = logits_of(*model, tokens, docs);
  const at::Tensor after = logits_of(*model, changed, docs);
  CHECK(before.narrow(1, 4, 3).equal(after.narrow(1, 4, 3)));
  CHECK(!before.narrow(1, 0, 4).equal(after.narrow(1, 0, 4)));
  CHECK(!logits_of(*model, tokens).narrow(1, 4, 3).equal(logits_of(*model, changed).narrow(1, 4, 3)));  // without ids they do
}

TEST_CASE("attention: the cache gives the logits of the whole sequence, token by token or in pieces", "[attention][cache]") {
  const auto model = tiny_model(tiny_config());
  const at::Tensor tokens = random_tokens(2, 12, 5);
  const at::Tensor whole = logits_of(*model, tokens);
  const std::vector<std::int64_t> pieces = GENERATE(std::vector<std::int64_t>{12}, std::vector<std::int64_t>{5, 1, 1, 1, 1, 1, 1, 1},
                                                    std::vector<std::int64_t>{4, 5, 3}, std::vector<std::int64_t>{1, 11});
  const at::NoGradGuard no_grad;
  KvCache cache = model->make_cache(2, 12);
  std::int64_t first = 0;
  for (const std::int64_t length : pieces) {
    ForwardContext context;
    context.cache = &cache;
    const at::Tensor logits = model->forward(tokens.narrow(1, first, length), context);
    CHECK(at::allclose(logits, whole.narrow(1, first, length), 1e-4, 1e-5));
    first += length;
  }
  CHECK(cache.filled == 12);
}
