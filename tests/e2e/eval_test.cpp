// Evaluation and generation through the real program.

#include <nlohmann/json.hpp>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <catch2/catch.hpp>

#include "e2e/toy.h"

using Catch::Contains;
using kf::test::Finished;
using kf::test::Toy;
using nlohmann::json;

namespace {

const std::string kSets = R"(
[[eval.datasets]]
name = "a"
path = "text/a.txt"
steps = 1

[[eval.datasets]]
name = "code/b"
path = "text/b.txt"
steps = -1
interval = 10
)";

/// A copy of the toy's job with more behind it.
void write_job(const Toy& toy, const std::string& name, const std::string& more) {
  std::string job = toy.read("toy.toml");
  for (const char* line : {"dataset_path = \"text\"\nfile_pattern = \"b.txt\"\n"}) {
    job.erase(job.rfind(line), std::string(line).size());
  }
  toy.write(name, job + more);
}

std::vector<json> rows(const std::string& text) {
  std::vector<json> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    out.push_back(json::parse(line));
  }
  return out;
}

std::vector<json> eval_rows(const Toy& toy, const std::string& run) {
  std::vector<json> out;
  for (const json& row : rows(toy.read("runs/" + run + "/metrics.jsonl"))) {
    if (row.contains("eval")) {
      out.push_back(row);
    }
  }
  return out;
}

Finished good(Finished done) {
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  return done;
}

Finished with_input(const Toy& toy, const std::vector<std::string>& args, const std::string& input) {
  kf::test::Options options;
  options.cwd = toy.folder();
  options.in = input;
  return kf::test::run(toy.command(args), options);
}

const std::string kData = std::string(KF_SOURCE_DIR) + "/tests/unit/train/eval/data/";

}  // namespace

TEST_CASE("eval: training with evaluations has the losses of training without, to the last bit") {
  const Toy toy;
  const std::vector<std::string> kind =
      GENERATE(std::vector<std::string>{"--model.dropout_resid=0.1", "--model.dropout_attn=0.1"},
               std::vector<std::string>{"--model.num_experts=4", "--model.moe_router=sigmoid_topk", "--model.moe_top_k=2"},
               std::vector<std::string>{"--optimizer.name=schedule_free_adamw"}, std::vector<std::string>{"--averaging.type=ema"});
  CAPTURE(kind);
  const auto losses = [&](const std::string& name, std::vector<std::string> more) {
    more.insert(more.end(), kind.begin(), kind.end());
    more.push_back("--run.name=" + name);
    good(toy.train(more));
    return toy.series(name, "loss");
  };
  const auto without = losses("without", {"--eval.enabled=false"});
  CHECK(without.size() == 10);
  CHECK(losses("with", {"--eval.interval=1", "--eval.at_start=true", "--eval.steps=-1"}) == without);
}

TEST_CASE("eval: writing text and evaluating in a hook leaves the losses as they are") {
  const Toy toy;
  good(toy.train({"--model.dropout_resid=0.1"}));
  toy.write("hook.lua",
            "local kf = require('kf')\n"
            "kf.register.hook('writer', { on_step_end = function(ctx)\n"
            "  local text, info = ctx:generate('line ', { max_new_tokens = 8, seed = 3, repetition_penalty = 1.1, min_p = 0.01 })\n"
            "  assert(#info.ids <= 8 and #info.logprobs == #info.ids and info.prompt_tokens == 5)\n"
            "  assert(info.stopped == 'length' or info.stopped == 'eos')\n"
            "  local many, infos = ctx:generate({ 'line ', 'of a', '' }, { max_new_tokens = 4, temperature = 0, stop = 'e' })\n"
            "  assert(#many == 3 and #infos == 3 and not many[1]:find('e'))\n"
            "  local long = ctx:generate(('x'):rep(60))  -- 200 tokens do not fit, and nobody asked for so many\n"
            "  assert(#long <= 4)\n"
            "  local eval = ctx:evaluate()\n"
            "  assert(eval.accuracy >= 0 and math.abs(eval.bits_per_byte - eval.loss / math.log(2)) < 0.1)\n"
            "end })\n"
            "return { extends = 'toy.toml', hooks = { 'writer' }, run = { name = 'hooked' }, model = { dropout_resid = 0.1 } }\n");
  good(toy.host({"hook.lua"}));
  CHECK(toy.series("hooked", "loss") == toy.series("toy", "loss"));
}

TEST_CASE("generate: an attention in Lua, which keeps no keys and values, writes over the whole text, and the log says so") {
  const Toy toy;
  toy.write(
      "own.lua",
      "local kf = require('kf')\n"
      "local nn = kf.nn\n"
      "kf.register.attention('plain', function(a)\n"
      "  local function heads(x) return x:unflatten(-1, { a.n_heads, -1 }):transpose(1, 2) end\n"
      "  return nn.module({\n"
      "    q = nn.linear(a.dim, a.dim), k = nn.linear(a.dim, a.dim), v = nn.linear(a.dim, a.dim), o = nn.linear(a.dim, a.dim),\n"
      "    forward = function(self, x)\n"
      "      local y = kf.op.scaled_dot_product_attention(heads(self.q(x)), heads(self.k(x)), heads(self.v(x)), { is_causal = true })\n"
      "      return self.o(y:transpose(1, 2):flatten(2))\n"
      "    end,\n"
      "  })\n"
      "end)\n"
      "kf.register.hook('writer', { on_train_end = function(ctx)\n"
      "  local one = ctx:generate('line ', { max_new_tokens = 6, temperature = 0 })\n"
      "  local many = ctx:generate({ 'line ', 'of' }, { max_new_tokens = 6, temperature = 0 })\n"
      "  assert(one == many[1])\n"
      "end })\n"
      "return { extends = 'toy.toml', hooks = { 'writer' }, model = { attention = 'plain', n_kv_heads = 4 } }\n");
  const Finished done = good(toy.host({"own.lua"}));
  CHECK_THAT(done.err, Contains("runs over the whole text"));
}

TEST_CASE("eval: sets have their own rows, intervals and limits, and the flat numbers are the mean of those that are always there") {
  const Toy toy;
  write_job(toy, "sets.toml", kSets);
  const Finished done = good(toy.host({"sets.toml", "--eval.at_start=true", "--eval.batch_size=3"}));
  CHECK_THAT(done.out, Contains("val ") && Contains("bits/byte)  a ") && Contains("code/b "));
  const std::vector<json> evals = eval_rows(toy, "sets");
  REQUIRE(evals.size() == 3);
  CHECK(evals[0]["step"] == 0);
  CHECK(evals[0]["eval"].contains("code/b"));
  CHECK(evals[1]["step"] == 5);
  CHECK_FALSE(evals[1]["eval"].contains("code/b"));
  CHECK(evals[2]["eval"].contains("code/b"));
  for (const json& row : evals) {
    const json& eval = row["eval"];
    CHECK(eval["loss"] == eval["a"]["loss"]);
    CHECK(eval["a"]["tokens"] == 3 * 32);
    CHECK(eval["accuracy"].get<double>() <= 1);
    CHECK(eval["bits_per_byte"].get<double>() == Approx(eval["loss"].get<double>() / std::log(2)).epsilon(0.05));
  }
  CHECK(evals[2]["eval"]["code/b"]["tokens"].get<int>() > 3 * 32);
}

TEST_CASE("eval: what the sets of a job cannot be is said before anything starts") {
  const Toy toy;
  const auto refused = [&](const std::string& more, const std::string& says) {
    write_job(toy, "bad.toml", more);
    const Finished bad = toy.host({"bad.toml"});
    INFO(bad.err);
    CHECK(bad.status == 2);
    CHECK_THAT(bad.err, Contains(says));
  };
  const std::string set = "[[eval.datasets]]\npath = \"text/a.txt\"\n";
  refused(set + "name = \"a\"\n" + set + "name = \"a\"\n", "are both called");
  refused(set + "name = \"loss\"\n", "is a number of every evaluation");
  refused(set + "name = \"a.b\"\n", "needs a name of letters");
  refused(set, "needs a name of letters");
  refused(set + "name = \"a\"\ninterval = 7\n", "must be a multiple of eval.interval (5)");
  refused(set + "name = \"a\"\ninterval = 10\n", "set eval.interval = 10");
  refused("[[eval.datasets]]\nname = \"a\"\n", "must have either path or hf_name");
  refused("[[eval.datasets]]\nname = \"a\"\npath = \"nowhere\"\n", "does not exist");
  refused("[[eval.datasets]]\nname = \"a\"\ndataset = \"nowhere\"\n", "nowhere");
  refused("[generate]\nstop = [\"\"]\n", "empty text");
}

TEST_CASE("eval: the command gives the numbers of the run's last evaluation") {
  const Toy toy;
  write_job(toy, "sets.toml", kSets);
  good(toy.host({"sets.toml"}));
  const json last = eval_rows(toy, "sets").back();
  const Finished done = good(toy.host({"eval", "runs/sets", "--format", "json"}));
  const json now = json::parse(done.out);
  CHECK(now["step"] == 10);
  CHECK_THAT(now["checkpoint"].get<std::string>(), Contains("step_10"));
  for (const char* set : {"a", "code/b"}) {
    CHECK(now["eval"][set]["loss"].get<double>() == Approx(last["eval"][set]["loss"].get<double>()).epsilon(1e-6));
    CHECK(now["eval"][set]["tokens"] == last["eval"][set]["tokens"]);
    CHECK(now["eval"][set]["bits_per_byte"].get<double>() == Approx(last["eval"][set]["bits_per_byte"].get<double>()).epsilon(1e-6));
    CHECK(now["eval"][set]["accuracy"].get<double>() == Approx(last["eval"][set]["accuracy"].get<double>()).margin(0.01));
  }
  const double mean = (now["eval"]["a"]["loss"].get<double>() + now["eval"]["code/b"]["loss"].get<double>()) / 2;
  CHECK(now["eval"]["loss"].get<double>() == Approx(mean));
  const Finished table = good(toy.host({"eval", "runs/sets/checkpoints/step_5"}));
  const std::string said = good(toy.host({"eval", "runs/sets", "--train.mixed_precision=bf16", "--optimizer.lr=1", "--generate.top_k=2",
                                          "--train.max_steps=3", "--train.batch_size=2"}))
                               .err;
  CHECK_THAT(said, Contains("mixed_precision has no effect here") && Contains("optimizer.lr has no effect here"));
  CHECK_THAT(said, Contains("generate.top_k has no effect here") && Contains("train.max_steps has no effect here"));
  CHECK_THAT(said, !Contains("train.batch_size has"));
  CHECK_THAT(table.out, Contains("set") && Contains("bits/byte") && Contains("code/b") && Contains("mean"));
}

TEST_CASE("eval: models and sets that a script registers are known from the run's own copy of it, and with --script") {
  const Toy toy;
  toy.write("own.lua",
            "local kf = require('kf')\n"
            "kf.register.norm('plain', function() return kf.nn.module({ forward = function(_, x) return x * 0.5 end }) end)\n"
            "kf.register.dataset('counting', function(a)\n"
            "  return { size = 9, get = function(i)\n"
            "    local ids = {}\n"
            "    for k = 0, a.seq_len do ids[k + 1] = (i + k) % 250 end\n"
            "    return ids\n"
            "  end }\n"
            "end)\n"
            "kf.run({ extends = 'toy.toml', run = { name = 'own' }, model = { norm_type = 'plain' },\n"
            "  eval = { dataset_path = '', datasets = { { name = 'numbers', dataset = 'counting', steps = -1 } } } })\n"
            "error('what comes behind is not run')\n");
  CHECK(toy.host({"own.lua"}).status == 3);
  const json last = eval_rows(toy, "own").back();
  const json from_folder = json::parse(good(toy.host({"eval", "runs/own", "--format", "json"})).out);
  const json now = json::parse(good(toy.host({"eval", "runs/own", "--script", "own.lua", "--format", "json"})).out);
  CHECK(from_folder["eval"] == now["eval"]);
  CHECK(now["eval"]["numbers"]["loss"].get<double>() == Approx(last["eval"]["numbers"]["loss"].get<double>()).epsilon(1e-6));
  CHECK(now["eval"]["numbers"]["tokens"] == 9 * 32);
  good(toy.host({"generate", "runs/own", "--script=own.lua", "--prompt", "line", "--max-new-tokens", "2"}));
  CHECK(toy.host({"eval", "runs/own", "--script", "none.lua"}).status == 3);
  std::filesystem::remove_all(toy / "runs/own/code");
  const Finished unknown = toy.host({"eval", "runs/own"});
  CHECK(unknown.status == 2);
  CHECK_THAT(unknown.err, Contains("plain") && Contains("--script FILE"));
}

TEST_CASE("eval: other data, other settings, and what is missing") {
  const Toy toy;
  good(toy.train({"--eval.enabled=false"}));
  const Finished nothing = toy.host({"eval", "runs/toy"});
  CHECK(nothing.status == 2);
  CHECK_THAT(nothing.err, Contains("evaluates on nothing") && Contains("--data PATH"));
  const json all = json::parse(good(toy.host({"eval", "runs/toy", "--data", "text/b.txt", "--format=json"})).out);
  const json some = json::parse(good(toy.host({"eval", "runs/toy", "--data", "text/b.txt", "--eval.steps=1", "--format=json"})).out);
  CHECK(some["eval"]["tokens"] == 4 * 32);
  CHECK(all["eval"]["tokens"].get<int>() > 4 * 32);
  const Finished folder = good(toy.host({"eval", "runs/toy", "--data=text", "--eval.file_pattern=*.txt"}));
  CHECK_THAT(folder.out, Contains("all"));
  CHECK(toy.host({"eval", "runs/toy", "--data", "text/none.txt"}).status == 5);
  std::filesystem::rename(toy / "text", toy / "moved");  // what it trained on need not exist any more
  good(toy.host({"eval", "runs/toy", "--data", "moved/b.txt"}));
  CHECK(toy.host({"eval", "nowhere", "--data", "text/b.txt"}).status == 6);
  CHECK(toy.host({"eval", "runs/toy", "--dat", "text/b.txt"}).status == 2);
  CHECK(toy.host({"eval", "runs/toy", "--items", "x"}).status == 2);
  CHECK(toy.host({"eval"}).status == 2);
}

TEST_CASE("eval: multiple choice on a Hugging Face folder gives the accuracies of lm-evaluation-harness") {
  const Toy toy;
  const json expected = json::parse(std::ifstream(kData + "choices_expected.json"));
  const std::vector<std::string> command{
      "eval",       kData + "choices_model", "--choices", kData + "choices.jsonl", "--format", "json", "--tokenizer", "bytes", "--items",
      "items.jsonl"};
  const json result = json::parse(good(toy.host(command)).out);
  CHECK(result["items"] == 7);
  CHECK(result["acc"].get<double>() == Approx(expected["acc"].get<double>()));
  CHECK(result["acc_norm"].get<double>() == Approx(expected["acc_norm"].get<double>()));
  const std::vector<json> items = rows(toy.read("items.jsonl"));
  REQUIRE(items.size() == 7);
  CHECK(items[6]["loglikelihoods"][4].get<double>() == Approx(expected["loglikelihoods"][6][4].get<double>()).epsilon(1e-5));
  CHECK(items[0]["bytes"] == json{4, 5, 18});

  toy.write("bad.jsonl", "{\"prompt\": \"x\"}\n");
  const Finished bad = toy.host({"eval", kData + "choices_model", "--choices", "bad.jsonl", "--tokenizer", "bytes"});
  CHECK(bad.status == 5);
  CHECK_THAT(bad.err, Contains("bad.jsonl:1") && Contains("choices"));
  const Finished guess = toy.host({"eval", kData + "choices_model", "--data", "text/b.txt"});
  CHECK(guess.status == 2);
  CHECK_THAT(guess.err, Contains("nothing turns text"));
  good(toy.host({"eval", kData + "choices_model", "--data", "text/b.txt", "--tokenizer", "bytes"}));
  const Finished none = toy.host({"eval", kData + "choices_model", "--choices", kData + "choices.jsonl"});
  CHECK(none.status == 2);
  CHECK_THAT(none.err, Contains("--tokenizer"));
}

TEST_CASE("generate: JSON gives text, ids and log-probabilities, the same in a batch as alone, and from standard input") {
  const Toy toy;
  good(toy.train());
  const std::vector<std::string> base{"generate",      "runs/toy", "--format",         "json", "--logprobs",
                                      "--temperature", "0",        "--max-new-tokens", "12"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), base.begin(), base.end());
    return more;
  };
  const std::vector<json> batch = rows(
      good(with_input(toy, with({"--prompts", "-"}), "\"line \"\n{\"prompt\": \"of a text that\", \"id\": 4}\n{\"ids\": [108, 105]}\n"))
          .out);
  REQUIRE(batch.size() == 3);
  CHECK(batch[0]["prompt"] == "line ");
  CHECK(batch[1]["prompt_tokens"] == 14);
  CHECK_FALSE(batch[2].contains("prompt"));
  for (const char* prompt : {"line ", "of a text that"}) {
    const json alone = rows(good(toy.host(with({"--prompt", prompt}))).out).at(0);
    const json& together = batch[std::string(prompt) == "line " ? 0 : 1];
    CHECK(alone["ids"] == together["ids"]);
    CHECK(alone["text"] == together["text"]);
    REQUIRE(alone["logprobs"].size() == alone["ids"].size());
    for (std::size_t i = 0; i < alone["logprobs"].size(); ++i) {
      CHECK(alone["logprobs"][i].get<double>() == Approx(together["logprobs"][i].get<double>()).margin(1e-4));
      CHECK(alone["logprobs"][i].get<double>() <= 0);
    }
  }
}

TEST_CASE("generate: text is whole characters, nothing is warned of, and the speed is told beside it") {
  const Toy toy;
  good(toy.train());
  const Finished done = good(toy.host({"generate", "runs/toy", "--prompt", "line ", "--max-new-tokens", "40", "--temperature", "5"}));
  CHECK(done.out.rfind("line ", 0) == 0);
  CHECK_NOTHROW(json(done.out).dump());  // throws where it is no UTF-8
  CHECK_THAT(done.err, Contains("tokens/s"));
  CHECK_THAT(done.err, !Contains("warn"));
  const Finished cold = good(toy.host({"generate", "runs/toy", "--prompt", "line ", "--max-new-tokens", "8", "--temperature", "1e-300"}));
  const Finished greedy = good(toy.host({"generate", "runs/toy", "--prompt", "line ", "--max-new-tokens", "8", "--temperature", "0"}));
  CHECK(cold.out == greedy.out);
  const Finished again = good(toy.host({"generate", "runs/toy", "--prompt", "line ", "--max-new-tokens", "40", "--temperature", "5"}));
  CHECK(again.out == done.out);
  const Finished other =
      good(toy.host({"generate", "runs/toy", "--prompt", "line ", "--max-new-tokens", "40", "--temperature", "5", "--seed", "1"}));
  CHECK(other.out != done.out);
}

TEST_CASE("generate: a stop text ends the answer before it, from the command line and from the job") {
  const Toy toy;
  good(toy.train());
  const auto text = [&](std::vector<std::string> more) {
    more.insert(more.begin(),
                {"generate", "runs/toy", "--prompt", "line ", "--max-new-tokens", "20", "--temperature", "0", "--format", "json"});
    return rows(good(toy.host(more)).out).at(0);
  };
  const std::string whole = text({})["text"];
  REQUIRE(whole.size() > 6);
  const std::string stop = whole.substr(3, 2);
  const json stopped = text({"--stop", stop});
  CHECK(stopped["text"] == whole.substr(0, whole.find(stop)));
  CHECK(stopped["stopped"] == "stop");
  good(toy.train({"--run.name=stopping", "--generate.stop=[" + json(stop).dump() + "]"}));
  const json of_job = rows(good(toy.host({"generate", "runs/stopping", "--prompt", "line ", "--max-new-tokens", "20", "--temperature", "0",
                                          "--format", "json"}))
                               .out)
                          .at(0);
  CHECK(of_job["text"] == stopped["text"]);
}

TEST_CASE("generate: a chat is asked as it was trained, by the format or by the template, which the run's folder keeps") {
  const Toy toy;
  toy.write("chat.jsonl", "{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}, {\"role\": \"assistant\", \"content\": \"yo\"}]}\n");
  toy.write("t.jinja", "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}{% if add_generation_prompt %}<a>{% endif %}");
  const std::vector<std::string> chat{"--data.dataset_path=chat.jsonl", "--data.file_pattern=*.jsonl", "--data.messages_field=messages",
                                      "--data.pack_method=pad",         "--eval.enabled=false",        "--train.max_steps=2",
                                      "--train.batch_size=1",           "--train.grad_accum_steps=1"};
  const auto train = [&](std::vector<std::string> more) {
    more.insert(more.end(), chat.begin(), chat.end());
    good(toy.train(more));
  };
  train({"--run.name=format"});
  train({"--run.name=template", "--data.chat_template=t.jinja"});
  std::filesystem::remove(toy / "t.jinja");
  const auto prompt_tokens = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "generate");
    words.insert(words.end(), {"--max-new-tokens", "1", "--format", "json"});
    return rows(good(toy.host(words)).out).at(0)["prompt_tokens"].get<int>();
  };
  // Bytes of "user: hi\nassistant: ", with "system: s\n" before it, and of "<user>hi\n<a>".
  CHECK(prompt_tokens({"runs/format", "--chat", "--prompt", "hi"}) == 20);
  CHECK(prompt_tokens({"runs/format", "--chat", "--prompt", "hi", "--system", "s"}) == 30);
  CHECK(prompt_tokens({"runs/template", "--chat", "--prompt", "hi"}) == 12);
  CHECK(prompt_tokens({"runs/format", "--prompt", "hi"}) == 2);
  toy.write("asked.jsonl", "{\"messages\": [{\"from\": \"human\", \"value\": \"hi\"}]}\n");
  CHECK(prompt_tokens({"runs/format", "--prompts", "asked.jsonl"}) == 20);
  CHECK(toy.host({"generate", "runs/format", "--prompt", "hi", "--system", "s"}).status == 2);
}

TEST_CASE("generate: faulty options and prompts are refused with what would do") {
  const Toy toy;
  good(toy.train());
  const auto refused = [&](std::vector<std::string> args, int status, const std::string& says) {
    args.insert(args.begin(), {"generate", "runs/toy"});
    const Finished bad = toy.host(args);
    INFO(bad.err);
    CHECK(bad.status == status);
    CHECK_THAT(bad.err, Contains(says));
  };
  refused({}, 2, "either --prompt or --prompts");
  refused({"--prompt", "a", "--temprature", "1"}, 2, "did you mean '--temperature'");
  refused({"--prompt", "a", "--temperature", "-1"}, 2, "--temperature: -1");
  refused({"--prompt", "a", "--temperature", "nan"}, 2, "--temperature");
  refused({"--prompt", "a", "--top-p", "1.5"}, 2, "--top-p");
  refused({"--prompt", "a", "--repetition-penalty", "0"}, 2, "--repetition-penalty");
  refused({"--prompt", "a", "--stop", ""}, 2, "--stop");
  refused({"--prompt", "a", "--logprobs"}, 2, "--format json");
  refused({"--prompt", "a", "--max-new-tokens", "64"}, 2, "at most 63 fit");
  refused({"--prompt", std::string(64, 'a')}, 2, "no room");
  refused({"--prompts", "none.jsonl"}, 5, "no such file");
  toy.write("p.jsonl", "\"a\"\n{\"text\": 1}\n");
  refused({"--prompts", "p.jsonl"}, 5, "p.jsonl:2");
  toy.write("p.jsonl", "{\"ids\": [999]}\n");
  refused({"--prompts", "p.jsonl"}, 5, "999");
}
