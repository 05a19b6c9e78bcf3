// Experts divided over processes: kf-host --nproc N with distributed.ep.

#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include "e2e/ranks.h"
#include "e2e/script_run.h"
#include "support/process.h"

using namespace kf::test;
using Catch::Contains;

namespace {

using Words = std::vector<std::string>;

/// Steps of eight sequences, which are one micro-batch of all ranks: the balance loss is taken over it. Three windows of evaluation, so one
/// of four ranks has none.
Words on_ranks(int ranks, const std::string& name, const Words& more = {}) {
  Words words{"--nproc",
              std::to_string(ranks),
              "toy.toml",
              "--run.name=" + name,
              "--train.batch_size=" + std::to_string(8 / ranks),
              "--train.grad_accum_steps=1",
              "--eval.batch_size=3",
              "--eval.steps=1",
              "--scheduler.total_steps=10",
              "--eval.interval=2",
              "--checkpoint.interval=2",
              "--model.num_experts=4",
              "--model.moe_ffn_dim=16",
              "--model.moe_router=sigmoid_topk",
              "--model.moe_sequence_aux_loss_weight=0.01",
              "--model.moe_shared_experts=1",
              "--optimizer.eps=1e-5"};  // see tests/unit/layout/equal_ranks.cpp
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace

TEST_CASE("ranks: experts divided over processes learn what one learns, in both forms of files, and any layout goes on", "[ranks]") {
  const Toy toy;
  const std::string packed = GENERATE("false", "true");
  const auto train = [&](int ranks, const std::string& name, const Words& more) {
    Words all = on_ranks(ranks, name, more);
    all.push_back("--model.moe_packed_experts=" + packed);
    const Finished done = toy.host(all);
    INFO(ranks << " ranks\n" << done.err << done.out);
    REQUIRE(done.status == 0);
  };
  train(1, "one", {});
  train(2, "parts", {"--distributed.ep=2", "--train.max_steps=2"});
  if (packed == "true") {
    train(1, "parts", {});
  } else {
    train(1, "parts", {"--train.max_steps=4"});
    train(4, "parts", {"--distributed.ep=4", "--train.max_steps=6"});
    train(2, "parts", {"--distributed.dp_shard=2", "--distributed.zero_stage=3", "--train.max_steps=8"});
    train(4, "parts", {"--distributed.ep=2", "--distributed.zero_stage=3"});
  }
  check_same_rows(toy, "one", "parts", {"loss", "grad_norm", "perplexity", "moe/max_load"}, 1e-5);
  const Finished text = toy.host({"generate", "runs/one", "--prompt", "line", "--max-new-tokens", "5", "--temperature", "0"});
  CHECK(text.status == 0);
  CHECK(text.out == toy.host({"generate", "runs/parts", "--prompt", "line", "--max-new-tokens", "5", "--temperature", "0"}).out);
}

TEST_CASE("ranks: what is generated while experts are divided is what one process generates", "[ranks]") {
  const ScriptRun run(
      job("train = { batch_size = 4, grad_accum_steps = 1, max_steps = 4 }, model = { num_experts = 4, moe_ffn_dim = 16 }, "
          "data = { add_bos = false }, hooks = { { name = 'writes', on_step_end = function(ctx) if ctx.step == 4 then "
          "print('> rank ' .. kf.dist.rank .. ': ' .. ctx:generate('line', { max_new_tokens = 8, temperature = 0 })) end end } }"));
  const auto said = [&](int ranks, const Words& more) {
    Words words{"--nproc", std::to_string(ranks), "s.lua", "--run.fresh=true"};
    words.insert(words.end(), more.begin(), more.end());
    const Finished done = run.toy.host(words);
    INFO(done.err << done.out);
    REQUIRE(done.status == 0);
    return done.out + done.err;
  };
  const std::string one = said(1, {}), two = said(2, {"--train.batch_size=2", "--distributed.ep=2"});
  const std::size_t begin = one.find("> rank 0: ");
  REQUIRE(begin != std::string::npos);
  const std::string text = one.substr(begin + 10, one.find('\n', begin) - begin - 10);
  CHECK_FALSE(text.empty());
  CHECK_THAT(two, Contains("> rank 0: " + text) && Contains("> rank 1: " + text));
}

TEST_CASE("ranks: experts that scripts write are divided, too", "[ranks]") {
  const ScriptRun run(
      "kf.register.mlp('wave', function(a) local nn = kf.nn return nn.module({ up = nn.linear(a.dim, a.hidden_dim), "
      "down = nn.linear(a.hidden_dim, a.dim), scale = kf.ones({ a.hidden_dim }), "
      "forward = function(self, x) return self.down(kf.sin(self.up(x)) * self.scale) end }) end)\n" +
      job("train = { batch_size = 8, grad_accum_steps = 1, max_steps = 6 }, optimizer = { eps = 1e-5 }, "
          "scheduler = { total_steps = 6 }, checkpoint = { interval = 3 }, eval = { enabled = false }, "
          "model = { activation = 'wave', num_experts = 4, ffn_hidden_dim = 16 }"));
  const auto train = [&](int ranks, const std::string& name, const Words& more) {
    Words words{"--nproc", std::to_string(ranks), "s.lua", "--run.name=" + name, "--train.batch_size=" + std::to_string(8 / ranks)};
    words.insert(words.end(), more.begin(), more.end());
    const Finished done = run.toy.host(words);
    INFO(done.err << done.out);
    REQUIRE(done.status == 0);
  };
  train(1, "one", {});
  train(2, "parts", {"--distributed.ep=2", "--train.max_steps=3"});
  train(4, "parts", {"--distributed.ep=2", "--distributed.zero_stage=3"});
  check_same_rows(run.toy, "one", "parts", {"loss", "grad_norm"}, 1e-5);
}
