// Averaged weights are had everywhere, and what evaluation and generation draw stands apart, through the real program.

#include <nlohmann/json.hpp>

#include <sstream>

#include <catch2/catch.hpp>

#include "e2e/toy.h"

using Catch::Contains;
using kf::test::Finished;
using kf::test::Toy;
using nlohmann::json;

namespace {

Finished good(Finished done) {
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  return done;
}

/// The `eval` of each row that has one.
std::vector<json> evals_of(const Toy& toy, const std::string& run) {
  std::istringstream in(toy.read("runs/" + run + "/metrics.jsonl"));
  std::vector<json> out;
  for (std::string line; std::getline(in, line);) {
    const json row = json::parse(line);
    if (row.contains("eval")) {
      out.push_back(row["eval"]);
    }
  }
  return out;
}
json first_eval(const Toy& toy, const std::string& run) { return evals_of(toy, run).at(0); }
json last_eval(const Toy& toy, const std::string& run) { return evals_of(toy, run).back(); }

json eval_of(const Toy& toy, const std::string& run, const std::vector<std::string>& more) {
  std::vector<std::string> args{"eval", "runs/" + run, "--format", "json"};
  args.insert(args.end(), more.begin(), more.end());
  return json::parse(good(toy.host(args)).out)["eval"];
}

const char* const kNoise = R"(
local kf = require('kf')
kf.register.transform('noise', function()
  return function(b) b.tokens:masked_fill_(kf.rand({ b.tokens:size() }):lt(0.1), 0) return b end
end)
kf.register.sampler('mine', function()
  return function(logits) return kf.op.multinomial(logits:softmax(-1), 1):squeeze(1) end
end)
kf.register.sink('drawing', function() return { write = function() kf.rng:random() end } end)
kf.register.metric('drawn', function() return { every = 2, compute = function() return { number = kf.rng:random() } end } end)
local job = { extends = 'toy.toml', run = { name = kf.args[1] }, scheduler = { name = 'constant' },
  data = { batch_transforms = { 'noise' } }, eval = { batch_transforms = { 'noise' }, interval = 5, at_start = true }, generate = { strategy = 'mine' } }
if kf.args[2] == 'none' then
  job.eval = { enabled = false }
end
if kf.args[2] == 'all' then
  job.metrics = { extra = { 'drawn' }, sinks = { 'drawing' } }
  job.hooks = { {
    on_step_end = function(ctx)
      if ctx.step == 2 then
        assert(ctx:evaluate().loss == ctx:evaluate().loss)
        local options = { max_new_tokens = 5, seed = 3 }
        local one, two = ctx:generate('line ', options), ctx:generate('line ', options)
        assert(one == two)
      end
    end,
    on_eval_end = function() kf.rng:random() end,
  } }
end
return job
)";

}  // namespace

TEST_CASE("draws: what evaluations, samplers in Lua, metrics and hooks of evaluations draw from kf.rng leaves training as it is") {
  const Toy toy;
  toy.write("noise.lua", kNoise);
  for (const char* kind : {"none", "eval", "all"}) {
    good(toy.host({"noise.lua", "--", kind, kind}));
  }
  const auto without = toy.series("none", "loss");
  CHECK(without.size() == 10);
  CHECK(toy.series("eval", "loss") == without);
  CHECK(toy.series("all", "loss") == without);
  CHECK(last_eval(toy, "eval") == last_eval(toy, "all"));
  // A stop between two evaluations changes neither the losses nor what the second one draws.
  good(toy.host({"noise.lua", "--train.max_steps=7", "--checkpoint.interval=7", "--run.name=parts", "--", "parts", "eval"}));
  good(toy.host({"noise.lua", "--train.max_steps=10", "--checkpoint.interval=7", "--run.name=parts", "--", "parts", "eval"}));
  CHECK(last_eval(toy, "parts") == last_eval(toy, "eval"));
  // The same weights have the same numbers, also where the evaluation draws.
  const json again = eval_of(toy, "eval", {"--script=noise.lua"});
  CHECK(again["loss"].get<double>() == Approx(last_eval(toy, "eval")["loss"].get<double>()).epsilon(1e-6));
}

TEST_CASE("averages: --weights average gives the row's ema, to eval, generate, init_from and kf.load_model") {
  const Toy toy;
  good(toy.train({"--averaging.type=" + std::string(GENERATE("ema", "ema_decay_sqrt")), "--averaging.beta=0.9", "--averaging.switch_step=4",
                  "--averaging.decay_steps=20", "--optimizer.lr=1e-2"}));
  const json row = last_eval(toy, "toy");
  REQUIRE(std::abs(row["ema"].get<double>() - row["loss"].get<double>()) > 1e-3);
  CHECK(eval_of(toy, "toy", {"--weights", "average"})["loss"] == row["ema"]);
  CHECK(eval_of(toy, "toy", {"--weights=saved"})["loss"] == row["loss"]);
  CHECK(eval_of(toy, "toy", {})["loss"] == row["loss"]);
  CHECK(eval_of(toy, "toy", {"--weights=raw"})["loss"] == row["loss"]);
  good(toy.train({"--run.name=from", "--checkpoint.init_from=runs/toy", "--checkpoint.init_weights=average", "--eval.at_start=true",
                  "--train.max_steps=1"}));
  // Another run times kernels of products for itself, and may take others: sums of at most 256 numbers in another order.
  CHECK(first_eval(toy, "from")["loss"].get<double>() == Approx(row["ema"].get<double>()).epsilon(256 * 0x1p-24));
  toy.write("load.lua",
            "local kf = require('kf')\n"
            "print(('%.17g'):format(kf.load_model('runs/toy', { weights = 'average' }):evaluate().loss))\n");
  CHECK(std::stod(good(toy.host({"lua", "load.lua"})).out) == row["ema"].get<double>());
  const auto logprobs = [&](const char* kind) {
    return json::parse(good(toy.host({"generate", "runs/toy", "--prompt=line", "--max-new-tokens=3", "--temperature=0", "--format=json",
                                      "--logprobs", "--weights", kind}))
                           .out)["logprobs"];
  };
  CHECK(logprobs("average") != logprobs("saved"));
  CHECK_THAT(toy.host({"eval", "runs/toy", "--weights=ema"}).err, Contains("--weights must be saved, average or raw, got 'ema'"));
}

TEST_CASE("products: a model that joins a run computes as its own run did, and the run goes on with the bits of its own choice") {
  const Toy toy;
  toy.write("guest.lua", R"(
local kf = require('kf')
return { extends = 'toy.toml', hooks = { { name = 'guest', on_step_end = function(ctx)
  if ctx.step == 7 and kf.args[1] then
    local model = kf.load_model(kf.args[1])
    print(('> %.17g'):format(model:evaluate().loss))
    model(kf.zeros({ 4, 32 }, { dtype = 'int64' }))
  end
end } } }
)");
  good(toy.train({"--run.name=other", "--train.cpu_products=plain"}));  // LibTorch's own products
  good(toy.host({"guest.lua", "--run.name=alone", "--train.max_steps=5", "--scheduler.total_steps=10"}));
  std::filesystem::copy(toy / "runs/alone", toy / "runs/visited", std::filesystem::copy_options::recursive);
  const std::vector<std::string> on{"guest.lua", "--train.max_steps=10", "--scheduler.total_steps=10"};
  const auto go_on = [&](const std::string& name, const std::vector<std::string>& arguments) {
    std::vector<std::string> words = on;
    words.push_back("--run.name=" + name);
    words.insert(words.end(), arguments.begin(), arguments.end());
    return good(toy.host(words)).out;
  };
  go_on("alone", {});
  const std::string said = go_on("visited", {"--", "runs/other"});
  CHECK(toy.series("visited", "loss") == toy.series("alone", "loss"));
  REQUIRE_THAT(said, Contains("> "));
  CHECK(std::stod(said.substr(said.find("> ") + 2)) == last_eval(toy, "other")["loss"].get<double>());
}

TEST_CASE("averages: the hook weight_ema keeps what averaging.type = \"ema\" does, and is read as it is") {
  const Toy toy;
  toy.write("hook.lua",
            "return { extends = 'toy.toml', run = { name = 'hook' }, optimizer = { lr = 1e-2 }, averaging = { type = 'ema', beta = 0.9 },\n"
            "  hooks = { require('kf.hooks.weight_ema').new({ decay = 0.9 }), { name = 'skips', on_backward_end = function(ctx)\n"
            "    if ctx.step == 4 then ctx:skip_update('a step that counts for no average') end\n"
            "  end } } }\n");
  good(toy.host({"hook.lua"}));
  const auto ema_loss = [&](const std::string& run) {
    std::istringstream in(toy.read("runs/" + run + "/metrics.jsonl"));
    double last = 0;
    for (std::string line; std::getline(in, line);) {
      last = json::parse(line).value("ema_loss", last);
    }
    return last;
  };
  // The hook's lerp has 1 - decay in fp32, too: the same numbers up to their last bits.
  CHECK(ema_loss("hook") == Approx(last_eval(toy, "hook")["ema"].get<double>()).epsilon(1e-6));
  toy.write("own.lua",
            "return { extends = 'toy.toml', run = { name = 'own' }, optimizer = { lr = 1e-2 },\n"
            "  hooks = { require('kf.hooks.weight_ema').new({ decay = 0.9 }) } }\n");
  good(toy.host({"own.lua"}));
  CHECK(eval_of(toy, "own", {"--weights=average", "--script=own.lua"})["loss"].get<double>() == Approx(ema_loss("own")).epsilon(1e-6));
}

TEST_CASE("averages: schedule_free_adamw saves its averages; raw takes the weights that it goes on from; others say that there is none") {
  const Toy toy;
  good(toy.train({"--optimizer.name=schedule_free_adamw", "--optimizer.lr=1e-2"}));
  const json row = last_eval(toy, "toy");
  CHECK(eval_of(toy, "toy", {})["loss"] == row["loss"]);
  CHECK(eval_of(toy, "toy", {"--weights=average"})["loss"] == row["loss"]);
  CHECK(eval_of(toy, "toy", {"--weights=raw"})["loss"] != row["loss"]);
  good(toy.train({"--run.name=plain"}));
  const Finished none = toy.host({"eval", "runs/plain", "--weights=average"});
  CHECK(none.status == 6);
  CHECK_THAT(none.err, Contains("holds no running average"));
}
