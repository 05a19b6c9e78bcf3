// What a run folder holds, and what of it a later start believes.

#include <catch2/catch.hpp>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "e2e/script_run.h"
#include "e2e/toy.h"

using kf::test::Finished;
using kf::test::job;
using kf::test::Options;
using kf::test::Process;
using kf::test::ScriptRun;
using kf::test::Toy;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::vector<json> rows(const Toy& toy, const std::string& run) {
  std::vector<json> out;
  std::istringstream lines(toy.read("runs/" + run + "/metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    out.push_back(json::parse(line));
  }
  return out;
}

json record(const Toy& toy, const std::string& run) { return json::parse(toy.read("runs/" + run + "/run.json")); }

/// An mlp of one's own in a module beside the script, with a helper that is read by dofile.
constexpr const char* kWave = R"(local kf = require("kf")
local scale = dofile("parts/scale.lua")
kf.register.mlp("wave", function(a)
  return kf.nn.module({
    up = kf.nn.linear(a.dim, a.hidden_dim),
    down = kf.nn.linear(a.hidden_dim, a.dim, { init = "output" }),
    forward = function(self, x) return self.down(self.up(x):sin() * scale()) end,
  })
end)
return true
)";

/// A run in s.lua whose model needs the script.
struct WaveRun : ScriptRun {
  WaveRun() : ScriptRun("require('parts.wave')\n" + job("model = { activation = 'wave' }, train = { max_steps = 5 }")) {
    toy.write("parts/wave.lua", kWave);
    toy.write("parts/scale.lua", "return function() return 1.0 end\n");
  }
};

}  // namespace

TEST_CASE("folder: a named save in the last step does not hide the stored result", "[folder]") {
  const bool stop = GENERATE(false, true);
  CAPTURE(stop);
  const ScriptRun run(std::string("local r = kf.run({ extends = 'toy.toml', run = { name = 'best' }, train = { max_steps = ") +
                      (stop ? "30" : "6") + " }, eval = { interval = 2 },\n" +
                      "hooks = { { on_eval_end = function(ctx) ctx:request_save('best') " +
                      (stop ? "if ctx.step == 6 then ctx:stop('plateau') end " : "") + "end } } })\n" +
                      "print(('> %s %s %.8f %.8f %d'):format(r.status, r.reason, r.loss, r.eval.loss, #r.history))\n");
  const std::string first = ScriptRun::said(run.go());
  CHECK(has(first, stop ? "stopped plateau" : "complete nil"));
  CHECK(ScriptRun::said(run.go()) == first);
  SECTION("without result.json the checkpoint and the rows tell the same") {
    fs::remove(run.toy / "runs/best/result.json");
    CHECK(ScriptRun::said(run.go()) == first);
  }
  SECTION("with a device or a pipe in its place, too") {
    fs::remove(run.toy / "runs/best/result.json");
    fs::create_symlink("/dev/zero", run.toy / "runs/best/result.json");
    const Finished again = run.go();
    CHECK(ScriptRun::said(again) == first);
    CHECK(has(again.err, "it is a device"));
  }
}

TEST_CASE("folder: with more steps a finished run goes on under other keys, as an unfinished one does, and lists them", "[folder]") {
  const Toy toy;
  REQUIRE(toy.train({"--train.max_steps=4"}).status == 0);
  const Finished more = toy.train({"--train.max_steps=6", "--optimizer.lr=5e-4", "--metrics.log_interval=2"});
  INFO(more.err);
  CHECK(more.status == 0);
  CHECK(has(more.err, "optimizer.lr 0.003 (checkpoint) -> 0.0005 (now)"));
  CHECK(has(more.err, "train.max_steps 4 (checkpoint) -> 6 (now)"));
  CHECK_FALSE(has(more.err, "log_interval"));  // moves no number
  CHECK(fs::exists(toy / "runs/toy/checkpoints/step_6"));
}

TEST_CASE("folder: keys that move no number leave a finished run complete", "[folder]") {
  const Toy toy;
  toy.trained();
  const Finished same = toy.train(
      {"--metrics.log_interval=3", "--checkpoint.interval=2", "--data.num_workers=0", "--eval.batch_size=2", "--run.tags=[\"a\"]"});
  INFO(same.err);
  CHECK(same.status == 0);
  CHECK(has(same.out, "already complete"));
}

TEST_CASE("folder: each kind of identity is refused by name, and taken where checkpoint.accept_changes names it", "[folder]") {
  struct Case {
    const char* change;
    const char* key;
    const char* accept;
  };
  const Case c = GENERATE(Case{"--train.z_loss_weight=0.1", "train.z_loss_weight", "train.z_loss_weight"},
                          Case{"--data.file_pattern=a.txt", "data.file_pattern", "data"}, Case{"--train.seed=7", "train.seed", "train"},
                          Case{"--model.rope_theta=500", "model.rope_theta", "model"});
  CAPTURE(c.change);
  const Toy toy;
  toy.trained({"--train.max_steps=3"});
  const Finished refused = toy.train({"--train.max_steps=5", c.change});
  CHECK(refused.status == 2);
  CHECK(has(refused.err, std::string(c.key) + " "));
  CHECK(has(refused.err, "checkpoint.accept_changes = [\"" + std::string(c.key) + "\"]"));
  const Finished taken = toy.train({"--train.max_steps=5", c.change, std::string("--checkpoint.accept_changes=[\"") + c.accept + "\"]"});
  INFO(taken.err);
  CHECK(taken.status == 0);
  CHECK(has(taken.err, std::string(c.key) + " "));
  CHECK(toy.series("toy", "loss").size() == 5);
}

TEST_CASE("folder: changed data files are accepted as \"files\", and an unknown name is told", "[folder]") {
  const Toy toy;
  REQUIRE(toy.train({"--train.max_steps=3"}).status == 0);
  toy.write("text/a.txt", std::string(6000, 'x'));
  const Finished refused = toy.train({"--train.max_steps=5"});
  CHECK(has(refused.err, "the data files (text) have changed since"));
  CHECK(has(refused.err, "accept_changes = [\"files\"]"));
  const Finished unknown = toy.train({"--train.max_steps=5", "--checkpoint.accept_changes=[\"file\"]"});
  CHECK(unknown.status == 2);
  CHECK(has(unknown.err, "did you mean 'files'?"));
  const Finished taken = toy.train({"--train.max_steps=5", "--checkpoint.accept_changes=[\"files\"]"});
  INFO(taken.err);
  CHECK(taken.status == 0);
  CHECK(has(taken.err, "have changed since"));
}

TEST_CASE("folder: a schedule that a longer run stretches is said with its numbers", "[folder]") {
  const Toy
      toy;  // cosine, warm-up of 2: step 8 of 8 has 0.1 + 0.45 (1 + cos(5/6 pi)) = 0.160, step 9 of 12 0.1 + 0.45 (1 + cos(0.6 pi)) = 0.411
  REQUIRE(toy.train({"--train.max_steps=8"}).status == 0);
  const Finished longer = toy.train({"--train.max_steps=12"});
  INFO(longer.err);
  CHECK(longer.status == 0);
  CHECK(has(longer.err, "step 8 had 0.16 of the peak, step 9 has 0.41"));
  CHECK(has(longer.err, "scheduler.total_steps = 8 keeps the schedule"));
}

TEST_CASE("folder: the first part of a long schedule, and the rest, are the run in one piece", "[folder]") {
  const Toy toy;
  toy.trained({"--run.name=straight"});
  REQUIRE(toy.train({"--run.name=parts", "--train.max_steps=4", "--scheduler.total_steps=10"}).status == 0);
  const Finished rest = toy.train({"--run.name=parts", "--train.max_steps=10", "--scheduler.total_steps=10"});
  REQUIRE(rest.status == 0);
  CHECK_FALSE(has(rest.err, "learning rate rises"));
  CHECK(toy.series("straight", "loss") == toy.series("parts", "loss"));
  CHECK(toy.series("straight", "lr") == toy.series("parts", "lr"));
}

TEST_CASE("folder: run.go_on takes up a run that a hook stopped, under the same schedule", "[folder]") {
  const ScriptRun run(job("hooks = { { on_step_end = function(ctx) if ctx.step == 4 then ctx:stop('plateau') end end } }"));
  REQUIRE(run.go({"--run.name=straight"}).status == 0);
  REQUIRE(run.toy.train({"--run.name=toy"}).status == 0);
  CHECK(has(run.go({"--run.name=straight"}).out, "run.go_on = true goes on"));
  const Finished other = run.go({"--run.name=straight", "--optimizer.weight_decay=0"});
  CHECK(other.status == 2);
  CHECK(has(other.err, "run.go_on = true goes on with these"));
  const Finished on = run.go({"--run.name=straight", "--run.go_on"});
  INFO(on.err);
  REQUIRE(on.status == 0);
  CHECK(run.toy.series("straight", "loss") == run.toy.series("toy", "loss"));
}

TEST_CASE("folder: a run's folder takes its own copies, whatever has become of the files that they are of", "[folder]") {
  const WaveRun run;
  REQUIRE(run.go().status == 0);
  const std::vector<std::string> eval{"eval", "runs/s", "--data", "text/b.txt", "--format", "json"};
  const Finished before = run.toy.host(eval);
  INFO(before.err);
  REQUIRE(before.status == 0);
  CHECK(run.toy.host({"runs/s", "--train.max_steps=6"}).status == 0);  // beside originals that are as they were
  run.toy.write("parts/scale.lua", "return function() return 100.0 end\n");
  const Finished more = run.toy.host({"runs/s", "--train.max_steps=7"});
  INFO(more.err);
  CHECK(more.status == 0);
  const Finished after = run.toy.host({"eval", "runs/s/checkpoints/step_5", "--data", "text/b.txt", "--format", "json"});
  CHECK(json::parse(after.out)["eval"]["loss"] == json::parse(before.out)["eval"]["loss"]);
}

TEST_CASE("folder: changed code is refused by the file's name; comments are no code", "[folder]") {
  const WaveRun run;
  REQUIRE(run.go().status == 0);
  const std::vector<std::string> more{"--train.max_steps=7"};
  SECTION("a comment and blanks") {
    run.toy.write("parts/wave.lua", "-- a word\n\n" + std::string(kWave));
    CHECK(run.go(more).status == 0);
  }
  SECTION("a module, a file read by dofile, and the flag") {
    const std::string file = GENERATE("parts/wave.lua", "parts/scale.lua");
    std::string text = file == "parts/wave.lua" ? kWave : "return function() return 2.0 end\n";
    if (const std::size_t at = text.find("sin"); at != std::string::npos) {
      text.replace(at, 3, "cos");
    }
    run.toy.write(file, text);
    const Finished refused = run.go(more);
    INFO(refused.err);
    CHECK(refused.status == 2);
    CHECK(has(refused.err, file + ": its functions have changed"));
    CHECK(has(refused.err, "accept_changes = [\"code\"]"));
    const Finished taken = run.go({"--train.max_steps=7", "--checkpoint.accept_changes=[\"code\"]"});
    INFO(taken.err);
    CHECK(taken.status == 0);
    CHECK(has(taken.err, "warning: the script's code: "));
    CHECK(fs::exists(run.toy / "runs/s/code.1"));  // what the first steps were made with
  }
  SECTION("the script outside of its functions: settings, which are compared key by key") {
    run.write("require('parts.wave')\n" + job("model = { activation = 'wave' }, train = { max_steps = 7 }"));
    const Finished done = run.go();
    INFO(done.err);
    CHECK(done.status == 0);
    CHECK(has(done.err, "warning: the script's code: s.lua: it has changed outside of its functions"));
  }
}

TEST_CASE("folder: it stands alone: generate, eval and the rest of the run need no script", "[folder]") {
  const WaveRun run;
  REQUIRE(run.go({"--run.tags=[\"first\", \"wave\"]", "--", "one arg"}).status == 0);
  const json told = record(run.toy, "s");
  CHECK(told["tags"] == json({"first", "wave"}));
  CHECK(told["arguments"] == json({"one arg"}));
  CHECK(has(run.toy.read("runs/s/" + told["script"].get<std::string>()), "parts.wave"));
  const json& start = told["starts"].at(0);
  for (const char* key : {"time", "command", "folder", "version", "commit", "torch", "host", "system", "threads", "device", "pid", "end"}) {
    CAPTURE(key);
    CHECK(start.contains(key));
  }
  CHECK(has(start["command"], "'--run.tags=[\"first\", \"wave\"]' -- 'one arg'"));
  CHECK(start["status"] == "complete");
  CHECK(json::parse(run.toy.read("runs/s/result.json"))["id"] == told["id"]);

  for (const char* gone : {"s.lua", "parts", "toy.toml"}) {
    fs::remove_all(run.toy / gone);
  }
  const Finished text = run.toy.host({"generate", "runs/s", "--prompt", "a", "--max-new-tokens", "2"});
  INFO(text.err);
  CHECK(text.status == 0);
  CHECK(run.toy.host({"eval", "runs/s/checkpoints/step_5"}).status == 0);
  CHECK(has(run.toy.host({"runs/s"}).out, "already complete"));
  for (const char* word : {"runs/s", "runs/s/job.toml"}) {
    const Finished check = run.toy.host({"config", "check", word});
    INFO(check.err);
    CHECK(check.status == 0);
  }
  const Finished more = run.toy.host({"runs/s", "--train.max_steps=7"});
  INFO(more.err);
  CHECK(more.status == 0);
  CHECK(run.toy.series("s", "loss").size() == 7);
  const json after = record(run.toy, "s");
  CHECK(after["starts"].size() == 2);
  CHECK(after["id"] == told["id"]);
  CHECK(after["script"] == told["script"]);
  CHECK_FALSE(fs::exists(run.toy / "runs/s/code.1"));
}

TEST_CASE("folder: a job's bases and its tokenizer lie in it, and stand in where they are gone", "[folder]") {
  const Toy toy;
  REQUIRE(toy.host({"tokenizer", "train", "text/a.txt", "--vocab-size", "257", "--out", "tok"}).status == 0);
  toy.write("base/one.toml", "extends = \"../toy.toml\"\n[train]\nmax_steps = 4\n");
  toy.write("job.toml", "extends = \"base/one.toml\"\n[data]\ntokenizer_path = \"tok\"\n");
  const Finished first = toy.host({"job.toml"});
  INFO(first.err);
  REQUIRE(first.status == 0);
  for (const char* file : {"code/job.toml", "code/base/one.toml", "code/toy.toml", "tokenizer/tokenizer.json"}) {
    CAPTURE(file);
    CHECK(fs::exists(toy / "runs/job" / file));
  }
  const std::vector<std::string> generate{"generate", "runs/job", "--prompt", "a", "--max-new-tokens", "2", "--format", "json"};
  const std::string before = toy.host(generate).out;
  CHECK(has(before, "\"ids\""));
  toy.write("tok/tokenizer.json", "{}");  // another one by now: the model was trained with the copy
  CHECK(toy.host(generate).out == before);
  for (const char* gone : {"base", "job.toml", "tok"}) {
    fs::remove_all(toy / gone);
  }
  const Finished text = toy.host({"generate", "runs/job", "--prompt", "a", "--max-new-tokens", "2"});
  INFO(text.err);
  CHECK(text.status == 0);
  CHECK(has(text.err, "the run's own copy is taken"));
  const Finished more = toy.host({"runs/job", "--train.max_steps=6"});
  INFO(more.err);
  CHECK(more.status == 0);
}

TEST_CASE("log: it holds what the terminal got: start, header, rows, evaluation, the error and the end", "[folder][log]") {
  const ScriptRun run(
      job("hooks = { { name = 'faulty', on_step_end = function(ctx) if ctx.step == 6 then error('the reason of the end') end "
          "end } }"));
  const Finished failed = run.go();
  CHECK(failed.status == 3);
  const std::string log = run.toy.read("runs/s/log.txt");
  std::istringstream lines(failed.out + failed.err);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && !has(line, "lua:")) {  // the traceback's lines stand there without "kf-host: "
      CAPTURE(line);
      CHECK(has(log, line.starts_with("warning: ") ? line.substr(9) : line));
    }
  }
  CHECK(has(log, "the reason of the end"));
  CHECK(has(log, " start 20"));
  CHECK(has(log, ": failed\n"));
  const json start = record(run.toy, "s")["starts"].at(0);
  CHECK(start["status"] == "failed");
  CHECK(start["steps"] == 6);
  CHECK(has(start["error"], "the reason of the end"));
}

TEST_CASE("log: what a script prints is there as it stands on standard output", "[folder][log]") {
  const ScriptRun run(
      "print('at the start', 1, nil, setmetatable({}, { __tostring = function() return 'a thing' end }))\n"
      "local file = io.open('other.txt', 'w')\n" +
      job("train = { max_steps = 2 }, hooks = { { on_step_end = function(ctx)\n"
          "  print('print of step ' .. ctx.step)\n"
          "  io.write('written ', ctx.step, '\\nand ')\n"
          "  io.stdout:write('by the method\\n')\n"
          "  file:write('elsewhere\\n')\n"
          "  io.stdout:write('no end')\n"
          "end } }"));
  const Finished done = run.go();
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  const std::string log = run.toy.read("runs/s/log.txt");
  for (const char* line :
       {"at the start\t1\tnil\ta thing", "print of step 1", "written 1", "and by the method", "print of step 2", "written 2"}) {
    CAPTURE(line);
    CHECK(has(done.out, std::string(line) + "\n"));
    CHECK(has(log, std::string(line) + "\n"));
  }
  CHECK(has(log, " info no end\n"));  // the row of the step came behind it
  CHECK(!has(log, "elsewhere"));
  CHECK(run.toy.read("other.txt") == "elsewhere\nelsewhere\n");
}

TEST_CASE("stop: the hint can be pasted, and the status says that there is more to do", "[folder][signal]") {
  const ScriptRun run(
      "local n = kf.args[1]\n" +
      job("train = { max_steps = 6 }, hooks = { { on_step_end = function(ctx) if ctx.step == 2 and n == \"it's $HOME\" then "
          "os.execute('kill -TERM $PPID') end end } }"));
  const Finished stopped = run.go({"--run.name=a b", "--optimizer.lr=1e-3", "--", "it's $HOME"});
  INFO(stopped.out << stopped.err);
  CHECK(stopped.status == 75);
  CHECK(has(run.toy.read("runs/a b/log.txt"), "stopped at step 2 by a signal"));
  CHECK(record(run.toy, "a b")["starts"].at(0)["status"] == "stopped");
  const std::size_t begin = stopped.out.find('`') + 1;
  const std::string hint = stopped.out.substr(begin, stopped.out.find("` goes on from there") - begin);
  Options options;
  options.cwd = run.toy.folder();
  const Finished pasted = kf::test::run({"/bin/sh", "-c", hint}, options);
  INFO(hint << pasted.err);
  CHECK(pasted.status == 0);
  CHECK(run.toy.series("a b", "lr").size() == 6);
}

TEST_CASE("stop: a signal ends a script that trains one job after the other, and the same command does the rest", "[folder][signal]") {
  const ScriptRun run(R"(for i = 1, 3 do
  local r = kf.run({ extends = "toy.toml", run = { name = "run" .. i }, train = { max_steps = 4 }, hooks = { { on_step_end = function(ctx)
    if ctx.step == 2 and i == 2 then os.execute("kill -TERM $PPID") end
  end } } })
  print("> " .. i, r.status, r.reason)
end
)");
  const Finished stopped = run.go();
  INFO(stopped.out << stopped.err);
  CHECK(stopped.status == 75);
  CHECK(has(ScriptRun::said(stopped), "2\tstopped\tsignal"));
  CHECK(has(stopped.err, "no further run is started"));
  CHECK_FALSE(fs::exists(run.toy / "runs/run3"));
  CHECK(run.go().status == 0);
  CHECK(run.toy.series("run2", "loss").size() == 4);
  CHECK(run.toy.series("run3", "loss").size() == 4);
}

TEST_CASE("rows: they have a time, seconds go on over a restart, and skipped updates are counted", "[folder]") {
  const ScriptRun run(
      job("train = { max_steps = 6, on_nan = 'skip' }, hooks = { { on_backward_end = function(ctx) if ctx.step == 2 then "
          "ctx:skip_update('so') end end } }"));
  REQUIRE(run.go({"--train.max_steps=4"}).status == 0);
  REQUIRE(run.go().status == 0);
  double seconds = 0;
  double time = 1.7e9;
  for (const json& row : rows(run.toy, "s")) {
    if (row.contains("eval")) {
      continue;
    }
    CHECK(row["seconds"].get<double>() > seconds);
    CHECK(row["time"].get<double>() >= time);
    seconds = row["seconds"];
    time = row["time"];
    CHECK(row["skipped"] == (row["step"] > 2 ? 1 : 0));
  }
  CHECK(json::parse(run.toy.read("runs/s/result.json"))["skipped"] == 1);
  CHECK(has(run.toy.read("runs/s/checkpoints/step_6/state.json"), "\"skipped\": 1"));
}

TEST_CASE("rows: what is not finite is null, and told beside it", "[folder]") {
  const ScriptRun run(
      R"(kf.register.metric("odd", function() return { every = 1, compute = function() return { a = 0/0, b = 1/0, c = 1 } end } end)
local r = )" +
      job("metrics = { extra = { 'odd' } }").substr(7) +
      "r.train = { max_steps = 2 }\nlocal out = kf.run(r)\nlocal row = out.history[1]\n"
      "for k, v in pairs(row) do if k:find('odd') then print('> ' .. k, v) end end\n");
  const Finished done = run.go();
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  const json row = rows(run.toy, "s").front();
  const std::string a = row.contains("odd/a") ? "odd/a" : "a";
  const std::string b = row.contains("odd/b") ? "odd/b" : "b";
  CHECK(row[a].is_null());
  CHECK(row["not_finite"][a] == "nan");
  CHECK(row["not_finite"][b] == "inf");
}

TEST_CASE("faults: what is no file in the place of a checkpoint's files is skipped with the word", "[folder][faults]") {
  struct Case {
    const char* file;
    const char* what;  // in its place
    const char* word;
  };
  const Case c = GENERATE(Case{"state.json", "/dev/zero", "it is a device"}, Case{"state.json", "state.json", "leads back to itself"},
                          Case{"model.safetensors", "/dev/zero", "it is a device"}, Case{"optimizer.safetensors", "pipe", "it is a pipe"},
                          Case{"job.toml", "/dev/full", "it is a device"}, Case{"state.json", "huge", "more than such a file can have"},
                          Case{"model.safetensors", "huge", "bytes instead of"});
  CAPTURE(c.file, c.what);
  const Toy toy;
  toy.trained({"--checkpoint.interval=1", "--train.max_steps=3", "--scheduler.total_steps=4"});
  const fs::path file = toy / "runs/toy/checkpoints/step_3" / c.file;
  fs::remove(file);
  if (c.what == std::string("pipe")) {
    REQUIRE(kf::test::run({"mkfifo", file.string()}).status == 0);
  } else if (c.what == std::string("huge")) {
    toy.write(fs::path("runs/toy/checkpoints/step_3") / c.file, "");
    fs::resize_file(file, std::uintmax_t{1} << 40);  // a hole
  } else {
    fs::create_symlink(c.what, file);
  }
  Options options;
  options.cwd = toy.folder();
  const Finished on =
      kf::test::run(toy.command({"toy.toml", "--checkpoint.interval=1", "--train.max_steps=4", "--scheduler.total_steps=4"}), options);
  INFO(on.out << on.err);
  CHECK(on.status == 0);
  CHECK(has(on.err, "skipped the checkpoint"));
  CHECK(has(on.err, c.word));
  CHECK(fs::exists(toy / "runs/toy/checkpoints/step_4/state.json"));
}

TEST_CASE("faults: links in a circle in the place of folders and of latest do not end the run", "[folder][faults]") {
  const Toy toy;
  toy.trained({"--checkpoint.interval=1", "--train.max_steps=3"});
  const std::string name = GENERATE("latest", "step_2", "step_4");
  CAPTURE(name);
  const fs::path path = toy / "runs/toy/checkpoints" / name;
  fs::remove_all(path);
  fs::create_symlink(name, path);
  const Finished on = toy.train({"--checkpoint.interval=1", "--train.max_steps=5"});
  INFO(on.out << on.err);
  CHECK(on.status == 0);
  CHECK(fs::exists(toy / "runs/toy/checkpoints/step_5/state.json"));
}

TEST_CASE("faults: a run whose folder is deleted under it ends at the next save", "[folder][faults]") {
  const std::string what = GENERATE("rm -rf runs/s", "mv runs/s runs/elsewhere && mkdir runs/s");
  CAPTURE(what);
  const ScriptRun run(
      job("train = { max_steps = 40 }, checkpoint = { interval = 5 }, hooks = { { on_step_end = function(ctx) if ctx.step == 3 "
          "then os.execute('" +
          what + "') end io.stderr:write('AT ', ctx.step, '\\n') end } }"));
  const Finished lost = run.go();
  INFO(lost.err);
  CHECK(lost.status == 6);
  CHECK(has(lost.err, "was deleted, moved or replaced"));
  CHECK(has(lost.err, "AT 5\n"));
  CHECK_FALSE(has(lost.err, "AT 6\n"));
  CHECK_FALSE(fs::exists(run.toy / "runs/s/checkpoints"));
}

TEST_CASE("faults: files that are deleted or replaced under a run are written again, whole, at the next save", "[folder][faults]") {
  const std::string what = GENERATE("rm runs/s/$F", "mv runs/s/$F runs/s/elsewhere-$F", "sed -i s/1/1/ runs/s/$F");
  CAPTURE(what);
  const std::string command = "for F in metrics.jsonl metrics.csv log.txt; do " + what + "; done";
  const ScriptRun run(
      job("train = { max_steps = 8 }, checkpoint = { interval = 4 }, metrics = { log_interval = 1, sinks = { 'csv' } }, hooks = { { "
          "on_step_end = function(ctx) if ctx.step == 5 then os.execute('" +
          command + "') end end } }"));
  const Finished done = run.go();
  INFO(done.err);
  CHECK(done.status == 0);
  const bool replaced = what.starts_with("sed");
  for (const std::string file : {"metrics.jsonl", "metrics.csv", "log.txt"}) {
    CAPTURE(file);
    CHECK(
        has(done.err, "runs/s/" + file + (replaced ? " was replaced while the run was on" : " was deleted or moved while the run was on")));
    CHECK(fs::exists(run.toy / ("runs/s/" + file + ".1")) == replaced);
  }
  CHECK(run.toy.series("s", "loss").size() == 8);
  CHECK(has(run.toy.read("runs/s/metrics.csv"), "step,loss,"));
  CHECK(has(run.toy.read("runs/s/metrics.csv"), "\n8,"));
  CHECK(has(run.toy.read("runs/s/log.txt"), " start "));
  CHECK(has(run.toy.read("runs/s/log.txt"), "written again, whole"));
}

TEST_CASE("faults: checkpoints that are deleted under a run are said, and it goes on", "[folder][faults]") {
  const ScriptRun run(
      job("checkpoint = { interval = 2 }, hooks = { { on_step_end = function(ctx) if ctx.step == 3 then "
          "os.execute('rm -rf runs/s/checkpoints') end end } }"));
  const Finished done = run.go();
  INFO(done.err);
  CHECK(done.status == 0);
  CHECK(has(done.err, "runs/s/checkpoints was deleted or replaced while the run was on"));
}

TEST_CASE("faults: what killed processes left goes at the next start, also of a complete run", "[folder][faults]") {
  const Toy toy;
  toy.trained({"--train.max_steps=3"});
  fs::create_directories(toy / "runs/toy/checkpoints/.step_1.tmp-999999-old");
  for (const char* file : {"result.json.tmp999999", "job.toml.tmp999999", "run.json.tmp999999"}) {
    toy.write(fs::path("runs/toy") / file, "");
  }
  toy.write("runs/toy/mine.txt.tmp999999", "");  // of somebody else
  CHECK(has(toy.train({"--train.max_steps=3"}).out, "already complete"));
  std::size_t left = 0;
  for (const auto& entry : fs::recursive_directory_iterator(toy / "runs/toy")) {
    left += has(entry.path().filename().string(), ".tmp") ? 1 : 0;
  }
  CHECK(left == 1);
}

TEST_CASE("faults: killed at any moment of a start, the folder is whole after the next", "[folder][faults]") {
  const WaveRun run;
  Options options;
  options.cwd = run.toy.folder();
  const std::vector<std::string> command = run.toy.command({"s.lua", "--train.max_steps=400", "--eval.enabled=false"});
  for (int i = 0; i < 4; ++i) {
    Process process(command, options);
    std::this_thread::sleep_for(std::chrono::milliseconds(150 + 150 * i));  // before, while and after the folder is made
    process.signal(SIGKILL);
    process.wait();
  }
  const Finished done = kf::test::run(command, options);
  INFO(done.err);
  REQUIRE(done.status == 0);
  CHECK(run.toy.series("s", "loss").rbegin()->first == 400);
  const json told = record(run.toy, "s");
  CHECK(told["starts"].back()["status"] == "complete");
  CHECK(run.toy.read("runs/s/code/parts/wave.lua") == kWave);
  for (const auto& entry : fs::recursive_directory_iterator(run.toy / "runs/s")) {
    CHECK_FALSE(has(entry.path().filename().string(), ".tmp"));
  }
}

TEST_CASE("frozen: weights left out of the saves come from init_from again, and must be the same", "[folder]") {
  const std::string precision = GENERATE("fp32", "bf16");  // in bf16 they are kept rounded, and generation reads them so
  CAPTURE(precision);
  const Toy toy;
  toy.trained({"--run.name=base", "--train.max_steps=2"});
  toy.trained({"--run.name=other", "--train.max_steps=3"});
  const std::vector<std::string> job{"--checkpoint.init_from=runs/base", "--train.frozen=[\"layers.0.*\", \"token_embedding*\"]",
                                     "--scheduler.total_steps=6", "--checkpoint.interval=3", "--train.mixed_precision=" + precision};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), job.begin(), job.end());
    return toy.train(more);
  };
  const Finished whole = with({"--run.name=whole", "--train.max_steps=6"});
  INFO(whole.err);
  REQUIRE(whole.status == 0);
  REQUIRE(with({"--run.name=parts", "--train.max_steps=3", "--checkpoint.save_frozen=false"}).status == 0);
  const Finished rest = with({"--run.name=parts", "--train.max_steps=6", "--checkpoint.save_frozen=false"});
  INFO(rest.err);
  REQUIRE(rest.status == 0);
  CHECK(toy.series("parts", "loss") == toy.series("whole", "loss"));
  const fs::path small = toy / "runs/parts/checkpoints/step_6/model.safetensors";
  CHECK(fs::file_size(small) * 10 < fs::file_size(toy / "runs/whole/checkpoints/step_6/model.safetensors") * 8);
  const std::vector<std::string> ask{"generate", "runs/parts", "--prompt", "line", "--temperature", "0", "--max-new-tokens", "8"};
  std::vector<std::string> ask_whole = ask;
  ask_whole[1] = "runs/whole";
  CHECK(toy.host(ask).out == toy.host(ask_whole).out);
  fs::rename(toy / "runs/base", toy / "runs/base_gone");
  fs::rename(toy / "runs/other", toy / "runs/base");
  const Finished changed = with({"--run.name=parts", "--train.max_steps=8", "--checkpoint.save_frozen=false"});
  CHECK(changed.status == 6);
  CHECK(has(changed.err, "are not the ones that it was trained beside"));
  CHECK(with({"--run.name=none", "--checkpoint.save_frozen=false", "--checkpoint.init_from=null"}).status == 2);
}

TEST_CASE("lock: where the file system has none, a file names who has the folder", "[folder][faults]") {
  const Toy toy;
  Options options;
  options.cwd = toy.folder();
  fs::copy_file(KF_FAILING_FLOCK, toy / "flock.so");  // LD_PRELOAD knows no path with a blank
  options.env = {{"LD_PRELOAD", (toy / "flock.so").string()}};
  const std::vector<std::string> command = toy.command({"toy.toml", "--train.max_steps=100000", "--eval.enabled=false"});
  {
    Process process(command, options);
    REQUIRE(process.wait_for("saved step_5"));
    CHECK(fs::exists(toy / "runs/toy/.lock.owner"));
    const Finished second = kf::test::run(command, options);
    CHECK(second.status == 1);
    CHECK(has(second.err, "another process is running in runs/toy"));
    CHECK(has(second.err, ".lock.owner"));
    process.signal(SIGKILL);
    process.wait();
  }
  CHECK(fs::exists(toy / "runs/toy/.lock.owner"));  // of a dead process: the next one takes it over
  {
    Process process(command, options);
    REQUIRE(process.wait_for("     loss    ppl      lr"));  // it trains: signals are its own
    process.signal(SIGTERM);
    CHECK(process.wait().status == 75);
  }
  CHECK_FALSE(fs::exists(toy / "runs/toy/.lock.owner"));
  toy.write("runs/toy/.lock.owner", "{\"machine\": \"another\", \"pid\": 1, \"started\": \"7\"}\n");
  const Finished other = kf::test::run(toy.command({"toy.toml", "--train.max_steps=60"}), options);
  CHECK(other.status == 1);
  CHECK(has(other.err, "names process 1 of 'another'"));
}
