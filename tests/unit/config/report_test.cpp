// What a user reads when a job is wrong.

#include "job.h"

namespace kf::test {
namespace {

/// The whole report, with the temporary folder cut out of the places.
std::string report(const std::string& toml, std::vector<std::string> overrides = {}) {
  const TempDir temp;
  config::Request request;
  request.job = temp.write("exp.toml", toml);
  request.overrides = std::move(overrides);
  request.files_must_exist = false;
  config::Loaded loaded = config::load(request, reference_catalog());
  for (config::Problem& problem : loaded.report.problems) {
    for (config::Origin* origin : {&problem.origin, problem.others.empty() ? &problem.origin : &problem.others.front()}) {
      if (origin->file.ends_with("exp.toml")) {
        origin->file = "exp.toml";
      }
    }
  }
  return config::to_text(loaded.report);
}

}  // namespace

TEST_CASE("config: all problems of a job come in one report, by file and line, the command line last", "[config]") {
  const std::string toml =
      "[model]\nmax_seq_len = 2048\n\n[optimizer]\nweigth_decay = 0.1\n\n[train]\nlearning_rate = 1e-3\nsteps = 1000\n\n\n  seq_len = "
      "4096\n";
  CHECK(report(toml, {"--optimizer.lr=fast"}) ==
        R"(5 problems in the job
  exp.toml:5:1       [optimizer] unknown key 'weigth_decay'; did you mean 'weight_decay'?
                     5 | weigth_decay = 0.1
  exp.toml:8:1       [train] unknown key 'learning_rate'; it belongs elsewhere → optimizer.lr
                     8 | learning_rate = 1e-3
  exp.toml:9:1       [train] unknown key 'steps'; did you mean 'max_steps'? ('steps' itself exists elsewhere → eval.steps)
                     9 | steps = 1000
  exp.toml:12:13     train.seq_len (4096) exceeds model.max_seq_len (2048); raise model.max_seq_len or lower train.seq_len
                     12 | seq_len = 4096
                     and exp.toml:2:15: max_seq_len = 2048
  --optimizer.lr     'fast' is not a number
nothing was started; `kf-host config keys optimizer` lists the keys of a section (here: optimizer, train))");
}

TEST_CASE("config: a rule over several keys stands at the first one that is set, and notes the others", "[config]") {
  CHECK(report("[model]\nmax_seq_len = 1024\n") == R"(1 problem in the job
  exp.toml:2:15      train.seq_len (2048) exceeds model.max_seq_len (1024); raise model.max_seq_len or lower train.seq_len
                     2 | max_seq_len = 1024
nothing was started; `kf-host config keys train` lists the keys of a section)");
  CHECK(report("[train]\nseq_len = 4096\n", {"--model.max_seq_len=64"}) == R"(1 problem in the job
  exp.toml:2:11      train.seq_len (4096) exceeds model.max_seq_len (64); raise model.max_seq_len or lower train.seq_len
                     2 | seq_len = 4096
                     and --model.max_seq_len
nothing was started; `kf-host config keys train` lists the keys of a section)");
}

TEST_CASE("config: a report ends with the sections of its problems, whichever they are", "[config]") {
  const auto ends_with = [](const std::string& text, const std::string& end) {
    CAPTURE(text);
    CHECK(text.ends_with(end));
  };
  ends_with(report("[data]\npack_method = \"zzz\"\n"), "`kf-host config keys data` lists the keys of a section");
  ends_with(report("", {"--optimizer.lr=fast"}), "`kf-host config keys optimizer` lists the keys of a section");
  ends_with(report("[eval]\nsteps = 0\n[metrics]\nlog_interval = 0\n"),
            "`kf-host config keys eval` lists the keys of a section (here: eval, metrics)");
  ends_with(report("zzz = 1\n"), "`kf-host config keys` lists all keys");
}

TEST_CASE("config: rules run even when other keys are broken, but not over broken ones", "[config]") {
  const std::string all = messages(load_toml("[model]\ndim = -1\nn_heads = 3\nmax_seq_len = 16\n[train]\nbatch_size = 0\n"));
  CHECK(all.find("model.dim (-1) must be positive") != std::string::npos);
  CHECK(all.find("train.batch_size (0) must be positive") != std::string::npos);
  CHECK(all.find("train.seq_len (2048) exceeds model.max_seq_len (16)") != std::string::npos);
  CHECK(all.find("divisible") == std::string::npos);
}

TEST_CASE("config: a misplaced key is told where it belongs, wherever it is written", "[config]") {
  CHECK(problem(load_toml("learning_rate = 1e-3\n")) == "unknown key 'learning_rate'; it belongs elsewhere → optimizer.lr");
  CHECK(problem(load_cli({"--learning_rate=1e-3"})) == "unknown key 'learning_rate'; it belongs elsewhere → optimizer.lr");
  CHECK(problem(load_cli({"--train.lr=1e-3"})) == "[train] unknown key 'lr'; it belongs elsewhere → optimizer.lr");
  CHECK(problem(load_cli({"--train.max-steps=5"})) == "[train] unknown key 'max-steps'; did you mean 'max_steps'?");
  CHECK(problem(load_cli({"--trian.max_steps=5"})) == "unknown key 'trian'; did you mean 'train'?");
  CHECK(problem(load_toml("[train]\nnum-epochs = 3\n")) == "[train] unknown key 'num-epochs'; did you mean 'max_steps'?");
  CHECK(problem(load_toml("[training]\nquantizaton = \"4bit\"\n")) == "unknown key 'training'; did you mean 'train'?");
}

TEST_CASE("config: the same fault is found in a recipe", "[config]") {
  config::Request request;
  config::Table train;
  const config::Origin line{config::Origin::Kind::recipe, "sweep.lua", 7, 3, "train = { learning_rate = 1e-3 },"};
  train["learning_rate"] = config::Node(1e-3, line);
  train.find("learning_rate")->key_origin = line;
  config::Table job;
  job["train"] = config::Node(train, line);
  request.recipe = config::Node(job, {config::Origin::Kind::recipe, "sweep.lua", 1, 1, ""});
  CHECK(config::to_text(config::load(request, reference_catalog()).report) == R"(1 problem in the job
  sweep.lua:7:3      [train] unknown key 'learning_rate'; it belongs elsewhere → optimizer.lr
                     7 | train = { learning_rate = 1e-3 },
nothing was started; `kf-host config keys train` lists the keys of a section)");
}

TEST_CASE("config: unknown names of parts list what there is", "[config]") {
  CHECK(problem(load_toml("[optimizer]\nname = \"adam\"\n")) ==
        "optimizer.name ('adam') is not a registered optimizer; did you mean 'adamw'? have: adamw, lion, schedule_free_adamw, muon, "
        "sophia_h");
  CHECK(problem(load_cli({"--model.activation=zzz"})) ==
        "'zzz' is not a registered mlp; have: silu, gelu, relu, swiglu, standard_gelu, standard_relu, gelu_tanh, relu2, swiglu_oai, "
        "xielu, tanh_mlp");
  CHECK(problem(load_toml("hooks = [\"guard\", \"gaurd\"]\n")) ==
        "hooks ('gaurd') is not a registered hook; did you mean 'guard'? have: guard, norms");
  CHECK(problem(load_toml("[train]\nmixed_precision = \"bf1\"\n")) ==
        "train.mixed_precision ('bf1') must be one of bf16, fp16, fp32, fp8; did you mean 'bf16'?");
}

TEST_CASE("config: a section is a table, whatever it is given", "[config]") {
  CHECK(problem(load_cli({"--model=1"})) == "model is a section, not a value; write --model.KEY=VALUE");
  CHECK(problem(load_toml("model = 1\n")) == "model (1) is a section, not a value; write [model] and its keys below");
  CHECK(messages(load_toml("[[train]]\nseed = 1\n")).find("is a section") != std::string::npos);
}

TEST_CASE("config: long lines and control characters do not spoil the terminal", "[config]") {
  const std::string text = report("[run]\nname = \"" + std::string(500, 'x') + "/\"\n\"a\\u001bb\" = 1\n");
  CHECK(text.find(std::string(130, 'x')) == std::string::npos);
  CHECK(text.find('\x1b') == std::string::npos);
}

TEST_CASE("config: an option for a section that does not exist is named, not called a default", "[config]") {
  const std::string text = config::to_text(load_cli({"--x.y=3", "--model.rope.theta=1"}).report);
  CHECK(text.find("default") == std::string::npos);
  CHECK(text.find("--x.y") != std::string::npos);
  CHECK(text.find("--model.rope.theta") != std::string::npos);
}

TEST_CASE("config: thousands of problems stay readable", "[config]") {
  std::string job;
  for (int i = 0; i < 1000; ++i) {
    job += "key_" + std::to_string(i) + " = 1\n";
  }
  const config::Report found = load_toml(job).report;
  const std::string text = config::to_text(found);
  CHECK(text.find("1000 problems in the job\n") == 0);
  CHECK(text.find("... and 800 more\n") != std::string::npos);
  CHECK(text.size() < 200000);
}

}  // namespace kf::test
