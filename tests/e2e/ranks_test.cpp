// Several processes that train together: kf-host --nproc N.

#include <catch2/catch.hpp>

#include <csignal>
#include <string>
#include <vector>

#include "e2e/ranks.h"
#include "e2e/script_run.h"
#include "support/process.h"

using namespace kf::test;
using Catch::Contains;

namespace {

using Words = std::vector<std::string>;

/// Ten steps of eight sequences on any number of ranks.
Words on_ranks(int ranks, const std::string& name, const Words& more = {}) {
  Words words{"--nproc",
              std::to_string(ranks),
              "toy.toml",
              "--run.name=" + name,
              "--train.batch_size=2",
              "--eval.batch_size=4",
              "--train.grad_accum_steps=" + std::to_string(4 / ranks)};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// Losses of all steps, and what evaluations say.
const Words kRows{"loss", "grad_norm", "perplexity"};

/// A run whose hook does `body` on rank 1 after step 3, where other ranks wait for at most `seconds`.
std::string hooked(const std::string& body, int seconds = 60) {
  return job("train = { max_steps = 1000 }, eval = { enabled = false }, distributed = { nccl_timeout_sec = " + std::to_string(seconds) +
             " }, hooks = { { name = 'on_one', on_step_end = function(ctx) if kf.dist.rank == 1 and ctx.step == 3 then " + body +
             " end end } }");
}

Finished run_hooked(const ScriptRun& run, int ranks = 2) { return run.toy.host({"--nproc", std::to_string(ranks), "s.lua"}); }

}  // namespace

TEST_CASE("ranks: processes have the losses of one, replicated and divided, and rows are written once", "[ranks]") {
  const Toy toy;
  REQUIRE(toy.host(on_ranks(1, "one")).status == 0);
  const std::vector<std::pair<int, Words>> layouts{{2, {"--distributed.dp_replicate=2"}},
                                                   {2, {"--distributed.zero_stage=2"}},
                                                   {4, {"--distributed.dp_replicate=2", "--distributed.zero_stage=3"}}};
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    const std::string name = "many" + std::to_string(i);
    const Finished done = toy.host(on_ranks(layouts[i].first, name, layouts[i].second));
    INFO(done.err << done.out);
    REQUIRE(done.status == 0);
    check_same_rows(toy, "one", name, kRows);
    CHECK_THAT(done.out, Contains("training complete: 10 steps"));
    CHECK(std::filesystem::exists(toy / "runs" / name / "log.rank-1.txt"));
  }
}

TEST_CASE("ranks: moments in 8 bits have the losses of one rank, and go on from one rank on two and from two on one", "[ranks]") {
  const Toy toy;
  const std::string dtype = GENERATE("int8", "fp8");
  const auto train = [&](int ranks, const std::string& name, int steps) {
    const Finished done = toy.host(on_ranks(ranks, name,
                                            {"--model.dim=64", "--optimizer.state_dtype_m=" + dtype, "--optimizer.state_dtype_v=" + dtype,
                                             "--scheduler.total_steps=10", "--train.max_steps=" + std::to_string(steps)}));
    INFO(done.err << done.out);
    REQUIRE(done.status == 0);
  };
  train(1, "one", 10);
  train(2, "two", 10);
  train(1, "up", 5);
  train(2, "up", 10);
  train(2, "down", 5);
  train(1, "down", 10);
  for (const char* const name : {"two", "up", "down"}) {
    check_same_rows(toy, "one", name, {"loss"}, 1e-4);  // sums in another order may round a moment to the next number of 8 bits
  }
}

TEST_CASE("ranks: an evaluation takes every sequence once, however many each rank gets (H44)", "[ranks]") {
  const Toy toy;  // 197 bytes are seven windows of 32 labels, the last one short
  std::string text;
  for (int i = 0; i < 22; ++i) {
    text += "eight " + std::to_string(i % 10) + (i == 21 ? "\n" : ". ");
  }
  toy.write("seven/a.txt", text);
  const auto perplexity = [&](int ranks) {
    const std::string name = "on" + std::to_string(ranks);
    const Finished done = toy.host(on_ranks(
        ranks, name,
        {"--eval.steps=-1", "--eval.batch_size=2", "--eval.dataset_path=seven", "--eval.file_pattern=a.txt", "--train.max_steps=5"}));
    INFO(done.err << done.out);
    REQUIRE(done.status == 0);
    return std::stod(toy.series(name, "perplexity").at(5));
  };
  const double one = perplexity(1);
  CHECK(perplexity(4) == Approx(one).epsilon(1e-6));
}

TEST_CASE("ranks: processes that cut sequences have the losses of one, which goes on where they were", "[ranks]") {
  const Toy toy;
  REQUIRE(toy.host(on_ranks(1, "one", {"--eval.interval=1"})).status == 0);
  const auto train = [&](int ranks, const std::string& name, const Words& more) {
    Words words{"--nproc",
                std::to_string(ranks),
                "toy.toml",
                "--run.name=" + name,
                "--train.batch_size=2",
                "--eval.batch_size=4",
                "--eval.interval=1",
                "--train.grad_accum_steps=4",
                "--scheduler.total_steps=10"};
    words.insert(words.end(), more.begin(), more.end());
    const Finished done = toy.host(words);
    INFO(done.err << done.out);
    REQUIRE(done.status == 0);
  };
  train(2, "cut", {"--distributed.cp=2", "--train.max_steps=4"});
  train(1, "cut", {"--train.max_steps=7"});
  train(3, "cut", {"--distributed.cp=3", "--distributed.cp_order=contiguous", "--distributed.cp_method=all_gather"});
  check_same_rows(toy, "one", "cut", kRows);
}

TEST_CASE("ranks: scripts compute over the ranks of an axis, with gradients", "[ranks]") {
  const ScriptRun run(
      job("train = { max_steps = 1 }, eval = { enabled = false }, hooks = { { name = 'dist', on_step_end = function(ctx) "
          "local d, r = kf.dist, kf.dist.rank local t = kf.tensor({ { r + 1, 2 }, { 3, 4 } }, { requires_grad = true }) "
          "local function check(name, got, wanted) assert(got:equal(kf.tensor(wanted)), name .. ': ' .. tostring(got)) end "
          "check('sum', d.sum(t, 'dp_shard'), { { 3, 4 }, { 6, 8 } }) check('tp', d.sum(t, 'tp'), { { r + 1, 2 }, { 3, 4 } }) "
          "check('largest', d.largest(t), { { 2, 2 }, { 3, 4 } }) check('broadcast', d.broadcast(t, 'data', 1), { { 2, 2 }, { 3, 4 } }) "
          "check('gather', d.gather(t[{ { 0, r + 1 } }], 'dp_shard'), { { 1, 2 }, { 2, 2 }, { 3, 4 } }) "
          "local part = d.part(t, 'dp_shard', 1) check('part', part, r == 0 and { { 1 }, { 3 } } or { { 2 }, { 4 } }) "
          "check('join', d.join(part, 'dp_shard', 1), { { r == 0 and 1 or 1, 2 }, { 3, 4 } }) "
          "local rows, from = d.exchange(t, 'dp_shard', r == 0 and { 2, 0 } or { 1, 1 }) "
          "assert(rows:size(0) == (r == 0 and 3 or 1) and from[1] == (r == 0 and 2 or 0) and from[2] == 1) "
          "assert(table.concat(d.tell('of ' .. r), ' ') == 'of 0 of 1'); "
          "(d.scatter(t, 'dp_shard') * (r + 1)):sum():backward() check('gradient', t.grad, { { 1, 1 }, { 2, 2 } }) "
          "t.grad = nil; (d.shared(t, 'dp_shard') * (r + 1)):sum():backward() check('shared', t.grad, { { 3, 3 }, { 3, 3 } }) "
          "d.barrier() print('> ' .. kf.mesh.coordinates.dp_shard .. ' of ' .. kf.mesh.degrees.dp_shard) end } }"));
  const Finished done = run_hooked(run);
  INFO(done.err << done.out);
  CHECK(done.status == 0);
  CHECK_THAT(done.out, Contains("> 0 of 2"));
  CHECK_THAT(done.err, Contains("[rank 1] > 1 of 2"));
  const Finished early = run_hooked(ScriptRun("local kf = require('kf') kf.dist.sum(kf.ones({ 1 }))"));
  CHECK(early.status == 3);
  CHECK_THAT(early.err, Contains("kf.dist.sum: no run is on, and the ranks meet when one begins"));
}

TEST_CASE("ranks: a run saved by four goes on with one, which two go on from", "[ranks]") {
  const Toy toy;
  REQUIRE(toy.host(on_ranks(4, "whole")).status == 0);
  const std::vector<int> ranks{4, 1, 2};
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const Finished done = toy.host(on_ranks(
        ranks[i], "parts",
        {"--train.max_steps=" + std::to_string(i == 2 ? 10 : 3 * (i + 1)), "--scheduler.total_steps=10", "--checkpoint.interval=3"}));
    INFO(ranks[i] << " ranks\n" << done.err << done.out);
    REQUIRE(done.status == 0);
  }
  check_same_rows(toy, "whole", "parts", {"loss"});
  const Finished text = toy.host({"generate", "runs/whole", "--prompt", "line", "--max-new-tokens", "5", "--temperature", "0"});
  CHECK(text.status == 0);
  CHECK(text.out == toy.host({"generate", "runs/parts", "--prompt", "line", "--max-new-tokens", "5", "--temperature", "0"}).out);
}

TEST_CASE("ranks: what optimizers, averages and adapters keep goes on with other ranks", "[ranks]") {
  const Toy toy;
  const Words more = GENERATE(Words{"--optimizer.name=muon", "--averaging.type=ema"},
                              Words{"--adapter.name=lora", "--adapter.rank=4", "--checkpoint.init_from=runs/base"});
  if (more.back() == "--checkpoint.init_from=runs/base") {
    REQUIRE(toy.host(on_ranks(1, "base")).status == 0);
  }
  const auto train = [&](int ranks, const std::string& name, int steps) {
    Words all = on_ranks(ranks, name, more);  // eps: see tests/unit/layout/data_parallel_test.cpp
    all.insert(all.end(), {"--optimizer.eps=1e-5", "--train.max_steps=" + std::to_string(steps), "--scheduler.total_steps=10"});
    const Finished done = toy.host(all);
    INFO(done.err << done.out);
    REQUIRE(done.status == 0);
  };
  train(1, "whole", 10);
  train(4, "parts", 5);
  train(2, "parts", 10);
  check_same_rows(toy, "whole", "parts", kRows);
}

TEST_CASE("ranks: a pipeline has the losses, evaluations and texts of one rank, and goes on with one and with two", "[ranks]") {
  const Toy toy;
  const auto train = [&](int stages, const std::string& name, const Words& more) {
    Words words = on_ranks(1, name, {"--distributed.pp=" + std::to_string(stages), "--model.tie_embeddings=true"});
    words[1] = std::to_string(stages);
    words.insert(words.end(), more.begin(), more.end());
    const Finished done = toy.host(words);
    INFO(stages << " stages\n" << done.err << done.out);
    REQUIRE(done.status == 0);
    return done.out;
  };
  train(1, "whole", {});
  CHECK_THAT(train(2, "stages", {}), Contains("training complete: 10 steps"));
  check_same_rows(toy, "whole", "stages", kRows);
  const std::vector<int> stages{2, 1, 2};
  for (std::size_t i = 0; i < stages.size(); ++i) {
    train(stages[i], "parts", {"--train.max_steps=" + std::to_string(i == 2 ? 10 : 3 * (i + 1)), "--scheduler.total_steps=10"});
  }
  check_same_rows(toy, "whole", "parts", {"loss"});
  const auto text = [&](const std::string& name) {
    return toy.host({"generate", "runs/" + name, "--prompt", "line", "--max-new-tokens", "5", "--temperature", "0"}).out;
  };
  CHECK_FALSE(text("whole").empty());
  CHECK(text("parts") == text("whole"));
}

TEST_CASE("ranks: workers that train apart go on between two exchanges, to the bit", "[ranks]") {
  // A row tells means over both workers, so it has every bit of both.
  const int ranks = 4;
  const Toy toy;
  const auto train = [&](const std::string& name, int steps) {
    const Finished done =
        toy.host(on_ranks(ranks, name,
                          {"--distributed.dp_replicate=2", "--distributed.dp_shard=" + std::to_string(ranks / 2), "--diloco.interval=4",
                           "--train.max_steps=" + std::to_string(steps), "--scheduler.total_steps=10"}));
    INFO(done.err << done.out);
    REQUIRE(done.status == 0);
  };
  train("whole", 10);
  train("parts", 6);
  train("parts", 10);
  for (const std::string key : {"loss", "grad_norm"}) {
    CHECK(toy.series("parts", key) == toy.series("whole", key));
  }
  CHECK(toy.series("whole", "loss").size() == 10);
  CHECK(toy.series("whole", "comm_bytes").size() == 10);
  // What comes out is what generates: the first worker's weights, which the exchange of step 8 made those of all.
  CHECK(toy.host({"generate", "runs/parts", "--prompt", "line", "--max-new-tokens", "3", "--temperature", "0"}).status == 0);
}

TEST_CASE("ranks: processes that divide the layers have the losses of one, go on in other layouts, and write the same text", "[ranks]") {
  const Toy toy;
  const Words divisible{"--model.vocab_size=260", "--optimizer.eps=1e-5"};
  const auto train = [&](int ranks, const std::string& name, const Words& layout) {
    Words words = on_ranks(ranks, name, divisible);
    words.insert(words.end(), layout.begin(), layout.end());
    const Finished done = toy.host(words);
    INFO(done.err << done.out);
    REQUIRE(done.status == 0);
  };
  train(1, "one", {});
  train(4, "divided", {"--distributed.tp=2", "--train.grad_accum_steps=2"});  // two readers, whose weights lie in parts over both
  check_same_rows(toy, "one", "divided", kRows);
  const auto until = [](int steps) { return "--train.max_steps=" + std::to_string(steps); };
  train(2, "moved", {"--distributed.tp=2", "--train.grad_accum_steps=4", until(4), "--scheduler.total_steps=10"});
  train(4, "moved", {"--distributed.tp=4", "--train.grad_accum_steps=4", until(6), "--scheduler.total_steps=10"});
  train(1, "moved", {until(10), "--scheduler.total_steps=10"});
  check_same_rows(toy, "one", "moved", {"loss"});
  const auto text = [&](const std::string& run) {
    const Finished done = toy.host({"generate", "runs/" + run, "--prompt", "line", "--max-new-tokens", "5", "--temperature", "0"});
    INFO(done.err);
    CHECK(done.status == 0);
    return done.out;
  };
  CHECK(text("one") == text("divided"));
}

TEST_CASE("ranks: linear layers of a script are divided as it says, and what cannot be is refused by name", "[ranks]") {
  const auto script = [](const std::string& layers) {
    return "local nn = kf.nn\nkf.register.mlp('mine', function(a) return nn.module({ " + layers +
           ", forward = function(self, x) return self.down(self.up(x):relu()) end }) end)\n" +
           job("model = { activation = 'mine', vocab_size = 260 }, optimizer = { eps = 1e-5 }, train = { max_steps = 4 }");
  };
  const ScriptRun run(
      script("up = nn.linear(a.dim, 64, { shard = 'colwise', bias = true }), "
             "down = nn.linear(64, a.dim, { shard = 'rowwise', bias = true })"));
  REQUIRE(run.toy.host({"s.lua", "--run.name=one"}).status == 0);
  const Finished two = run.toy.host({"--nproc", "2", "s.lua", "--run.name=two", "--distributed.tp=2"});
  INFO(two.err << two.out);
  REQUIRE(two.status == 0);
  check_same_rows(run.toy, "one", "two", kRows);
  const ScriptRun bad(
      script("up = nn.linear(a.dim, 64), down = nn.linear(64, a.dim), table = nn.embedding(8, a.dim, { shard = 'colwise' })"));
  const Finished refused = bad.toy.host({"--nproc", "2", "s.lua", "--distributed.tp=2"});
  CHECK(refused.status == 2);
  CHECK_THAT(refused.err,
             Contains("mlp.table.weight is to be divided over distributed.tp = 2 ('colwise'), but it is no linear layer's weight"));
}

TEST_CASE("ranks: a width that distributed.tp does not divide is an error at its line, before anything starts", "[ranks]") {
  const Toy toy;
  const Finished done = toy.host({"--nproc", "2", "toy.toml", "--distributed.tp=2"});
  CHECK(done.status == 2);
  CHECK_THAT(done.err, Contains("model.vocab_size (257) must be divisible by distributed.tp (2)"));
  CHECK_FALSE(std::filesystem::exists(toy / "runs"));
}

TEST_CASE("ranks: scripts know their rank, and a stop, a save and an evaluation that one asks for are done by all", "[ranks]") {
  const ScriptRun run(
      hooked("print('> rank ' .. kf.dist.rank .. ' of ' .. kf.dist.world) ctx:request_save('mine') ctx:stop('seen enough')"));
  const Finished done = run_hooked(run);
  INFO(done.err << done.out);
  CHECK(done.status == 0);
  CHECK_THAT(done.err, Contains("[rank 1] > rank 1 of 2"));
  CHECK_THAT(done.out, Contains("stopped at step 3: seen enough"));
  CHECK(std::filesystem::exists(run.checkpoints() / "mine" / "state.json"));
}

TEST_CASE("ranks: what a hook generates on several ranks is what it generates on one", "[ranks]") {
  // The weights lie in parts (ZeRO-3), so all ranks generate, and each gets the same text.
  const ScriptRun run(
      job("train = { batch_size = 4, grad_accum_steps = 1, max_steps = 6 }, data = { add_bos = false }, "
          "hooks = { { name = 'writes', on_step_end = function(ctx) if ctx.step == 4 then "
          "print('> rank ' .. kf.dist.rank .. ': ' .. ctx:generate('line', { max_new_tokens = 8, temperature = 0 })) end end } }"));
  const auto said = [&](int ranks, int batch) {
    const Finished done = run.toy.host({"--nproc", std::to_string(ranks), "s.lua", "--run.fresh=true",
                                        "--train.batch_size=" + std::to_string(batch), "--distributed.zero_stage=3"});
    INFO(done.err << done.out);
    REQUIRE(done.status == 0);
    return done.out + done.err;
  };
  const std::string one = said(1, 4), two = said(2, 2);
  const std::size_t begin = one.find("> rank 0: ");
  REQUIRE(begin != std::string::npos);
  const std::string text = one.substr(begin + 10, one.find('\n', begin) - begin - 10);
  CHECK_FALSE(text.empty());
  CHECK_THAT(two, Contains("> rank 0: " + text) && Contains("> rank 1: " + text));
}

TEST_CASE("ranks: settings that a script gives by rank, and gradients that it changes on one replica, end all by name", "[ranks]") {
  SECTION("settings") {
    const ScriptRun run(job("optimizer = { weight_decay = 0.1 * (1 + kf.dist.rank) }"));
    const Finished done = run_hooked(run);
    INFO(done.err);
    CHECK(done.status == 2);
    CHECK_THAT(done.err, Contains("rank 1 has another job than rank 0: `[optimizer] weight_decay = 0.2`"));
    CHECK_FALSE(std::filesystem::exists(run.toy / "runs/s"));
  }
  SECTION("gradients") {
    const ScriptRun run(
        job("distributed = { dp_replicate = 2 }, hooks = { { name = 'one', on_backward_end = function(ctx) if kf.dist.rank == 1 then "
            "for _, g in ctx:gradients() do g:mul_(2) end end end } }"));
    const Finished done = run_hooked(run);
    INFO(done.err);
    CHECK(done.status == 3);
    CHECK_THAT(done.err, Contains("on_backward_end left other gradients on some ranks"));
  }
}

TEST_CASE("ranks: files of hooks are written once, and what a rank has left behind keeps nobody waiting", "[ranks]") {
  const ScriptRun run(
      job("train = { max_steps = 2 }, eval = { enabled = false }, hooks = { { name = 'writes', on_step_end = function(ctx) "
          "ctx:write_artifact('who.txt', 'rank ' .. kf.dist.rank) if kf.dist.rank == 1 then os.execute('sleep 200 &') end end } }"));
  Options options;
  options.cwd = run.toy.folder();
  options.timeout = std::chrono::seconds(100);
  Process process(run.toy.command({"--nproc", "2", "s.lua"}), options);
  const Finished done = process.wait();
  INFO(done.err << done.out);
  CHECK_FALSE(done.timed_out);
  CHECK(done.status == 0);
  CHECK(run.toy.read("runs/s/artifacts/who.txt") == "rank 0");
}

TEST_CASE("ranks: one that is killed ends all at once, and the message names it", "[ranks]") {
  const Finished done = run_hooked(ScriptRun(hooked("require('ffi').cdef('int raise(int);') require('ffi').C.raise(9)")));
  INFO(done.err);
  CHECK(done.status == 128 + SIGKILL);
  CHECK_THAT(done.err, Contains("rank 1 was killed by signal 9") && Contains("kf-host: rank 1 is gone"));
}

TEST_CASE("ranks: a signal to the program stops all after a save, and the command that goes on starts them all", "[ranks]") {
  const ScriptRun run(job("train = { max_steps = 100000 }, eval = { enabled = false }"));
  Options options;
  options.cwd = run.toy.folder();
  Process process(run.toy.command({"--nproc", "2", "s.lua"}), options);
  REQUIRE(process.wait_for("loss"));
  process.signal(SIGTERM);
  const Finished done = process.wait();
  INFO(done.err << done.out);
  CHECK(done.status == 75);
  CHECK_THAT(done.out, Contains("by a signal") && Contains("--nproc 2 s.lua` goes on from there"));
}

TEST_CASE("ranks: a run's folder goes on with its ranks, and what they start is none of them", "[ranks]") {
  const ScriptRun run(
      job("train = { max_steps = 2 }, eval = { enabled = false }, hooks = { { name = 'told', on_train_begin = function() "
          "os.execute('echo \"> $KF_RANK.\"') print('> rank ' .. kf.dist.rank .. ' of ' .. kf.dist.world) end } }"));
  REQUIRE(run.toy.host({"--nproc", "2", "s.lua"}).status == 0);
  const Finished done = run.toy.host({"--nproc", "2", "runs/s", "--train.max_steps=4"});
  INFO(done.err << done.out);
  CHECK(done.status == 0);
  CHECK_THAT(done.out, Contains("> rank 0 of 2") && Contains("> .\n"));
  CHECK_THAT(done.err, Contains("[rank 1] > rank 1 of 2"));
}

TEST_CASE("ranks: one that is asked to hang up where that is ignored trains on", "[ranks]") {
  const ScriptRun run(job("train = { max_steps = 100 }, eval = { enabled = false }, metrics = { log_interval = 1 }"));
  Options options;
  options.cwd = run.toy.folder();
  Process process({"bash", "-c", "trap '' HUP; exec '" + run.toy.command({}).front() + "' --nproc 2 s.lua"}, options);
  REQUIRE(process.wait_for("\n    2 "));
  process.signal(SIGHUP);
  const Finished done = process.wait();
  INFO(done.err << done.out);
  CHECK(done.status == 0);
  CHECK_THAT(done.out, Contains("training complete: 100 steps"));
}

TEST_CASE("ranks: what cannot be is said before anything starts", "[ranks]") {
  const Toy toy;
  const auto says = [&](const Words& words) {
    const Finished done = toy.host(words);
    return std::to_string(done.status) + " " + done.err;
  };
  CHECK_THAT(says({"--nproc", "0", "toy.toml"}), Contains("2 ") && Contains("--nproc 0: must be a number of processes, 1 to 4096"));
  CHECK_THAT(says({"toy.toml", "--nproc"}), Contains("--nproc needs a number"));
  CHECK_THAT(says({"toy.toml", "--distributed.dp_shard=2"}), Contains("asks for 2 processes, and this is one") && Contains("--nproc 2"));
  CHECK_THAT(says({"--nproc=2", "toy.toml", "--distributed.dp_shard=3"}), Contains("do not match world_size (2)"));
  CHECK_THAT(says({"--nproc=2", "toy.toml", "--distributed.cp=2", "--model.sdpa_backend=flash"}),
             Contains("model.sdpa_backend = \"flash\" names one kernel"));
  toy.write("sweep.lua",
            "local kf = require('kf') return kf.sweep{ base = { extends = 'toy.toml' }, space = { optimizer = { lr = "
            "kf.loguniform(1e-4, 1e-2) } }, objective = 'eval.loss', method = 'random', trials = 1 }");
  CHECK_THAT(says({"--nproc=2", "sweep.lua"}), Contains("start it once, without --nproc"));
  CHECK_FALSE(std::filesystem::exists(toy / "runs"));
}
