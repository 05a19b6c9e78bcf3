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
    train(2, "parts", {"--distributed.dp_shard=2", "--distributed.zero_stage=1", "--train.max_steps=4"});
    train(1, "parts", {});
  } else {
    train(2, "parts", {"--distributed.dp_shard=2", "--distributed.zero_stage=2", "--train.max_steps=4"});
    train(4, "parts", {"--distributed.ep=4", "--train.max_steps=6"});
    train(2, "parts", {"--distributed.dp_shard=2", "--distributed.zero_stage=3", "--train.max_steps=8"});
    train(4, "parts", {"--distributed.ep=2", "--distributed.zero_stage=3"});
  }
  check_same_rows(toy, "one", "parts", {"loss", "grad_norm", "perplexity", "moe/aux_loss", "moe/max_load"}, 1e-5);
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

TEST_CASE("ranks: experts inside of what scripts write are divided over tp, and what stands beside them is whole", "[ranks]") {
  // A block that holds the whole layer of experts; and an mlp around a native one, which is an expert and stands beside them.
  const ScriptRun run(
      "local nn = kf.nn\n"
      "kf.register.block('around', function(a) local m = a.config.model return nn.module({ "
      "first = nn.norm(m.norm_type, m.dim, m.norm_eps), attention = nn.attention(m, { layer = a.layer }), "
      "second = nn.norm(m.norm_type, m.dim, m.norm_eps), experts = nn.moe(m, { layer = a.layer, activation = 'silu' }), "
      "forward = function(self, x, ctx) local h = x + self.attention(self.first(x), ctx) return h + self.experts(self.second(h)) end "
      "}) end)\n"
      "kf.register.mlp('inside', function(a) return nn.module({ mlp = nn.mlp('silu', a.dim, a.hidden_dim), "
      "forward = function(self, x) return self.mlp(x) end }) end)\n"
      "kf.register.router('mine', function(a) return nn.module({ gate = nn.linear(a.dim, a.num_experts), "
      "forward = function(self, x) local weights, experts = self.gate(x):softmax(-1):topk(a.top_k, -1) return weights, experts end "
      "}) end)\n" +
      job("train = { batch_size = 8, grad_accum_steps = 1, max_steps = 3 }, optimizer = { eps = 1e-5 }, eval = { enabled = false }, "
          "model = { vocab_size = 260, num_experts = 4, moe_ffn_dim = 16, ffn_hidden_dim = 16, moe_shared_experts = 1 }"));
  const auto train = [&](const std::string& name, const Words& more) {
    Words words{"s.lua", "--run.name=" + name};
    words.insert(words.end(), more.begin(), more.end());
    const Finished done = run.toy.host(words);
    INFO(done.err << done.out);
    REQUIRE(done.status == 0);
  };
  const auto one_and_two = [&](const std::string& name, const Words& more) {
    train(name, more);
    Words two = more;
    two.insert(two.end(), {"--nproc", "2", "--distributed.tp=2"});
    train(name + "-two", two);
    check_same_rows(run.toy, name, name + "-two", {"loss", "grad_norm"}, 1e-5);
  };
  one_and_two("block", {"--model.block=around"});
  one_and_two("mlp", {"--model.activation=inside", "--model.moe_router=mine"});
}

TEST_CASE("ranks: what a script wants divided and cannot be is refused by name", "[ranks]") {
  const auto refused = [](const std::string& script, const std::string& keys, const Words& more) {
    const ScriptRun run("local nn = kf.nn\n" + script + job("model = { vocab_size = 260 }, eval = { enabled = false }" + keys));
    Words words{"s.lua", "--distributed.tp=2"};
    words.insert(words.end(), more.begin(), more.end());
    const Finished done = run.toy.host(words);
    INFO(done.err << done.out);
    CHECK(done.status == 2);
    return done.err;
  };
  CHECK_THAT(refused("kf.register.mlp('mine', function(a) return nn.module({ up = nn.linear(a.dim, a.hidden_dim, { shard = 'colwise' }), "
                     "down = nn.linear(a.hidden_dim, a.dim), forward = function(self, x) return self.down(self.up(x)) end }) end)\n",
                     "", {"--nproc", "4", "--distributed.ep=2", "--model.activation=mine", "--model.num_experts=4"}),
             Contains("experts.0.up.weight is to be divided over distributed.tp = 2 ('colwise'), but it is an expert's"));
  CHECK_THAT(refused("kf.register.parallel_plan('rows', function() return { ['*embed*'] = 'replicate' } end)\n",
                     ", distributed = { plan = 'rows' }", {"--nproc", "2"}),
             Contains("divided 'replicate', but it is a native layer's, which divides it 'colwise' by itself"));
  CHECK_THAT(refused("kf.register.adapter('beside', function(a) return nn.linear(a.dim, a.out_dim) end)\n",
                     ", adapter = { name = 'beside', targets = { 'q_proj' } }", {"--nproc", "2"}),
             Contains("cannot stand beside layers.0.attention.q_proj, of which distributed.tp = 2 gives each rank a part"));
}
