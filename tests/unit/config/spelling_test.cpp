// How values may be written on the command line, and how strictly files are read.

#include <cmath>

#include "job.h"

namespace kf::test {

TEST_CASE("config: the command line takes TOML, Python and bare spellings of a value", "[config]") {
  const config::Config c =
      good(load_cli({"--optimizer.lr=1e-4", "--train.max_steps=1e3", "--train.seed=0x10", "--train.data_seed=1_000",
                     "--optimizer.betas=(0.8,0.99)", "--train.compile_model=False", "--model.tie_embeddings", "--model.qk_norm=yes",
                     "--data.pin_memory=off", "--metrics.wandb_run_name=123e456", "--data.tokenizer_path=123", "--train.grad_clip_norm=inf",
                     "--data.anneal_weights={'web': 0.25, \"code\": .75}", "--checkpoint.exclude_from_loading=[optimizer, 'x y']",
                     "--data.file_pattern=[0-9]*.npy", "--data.hf_dataset_split={a,b}"}));
  CHECK(c.optimizer.lr == 1e-4);
  CHECK(c.train.max_steps == 1000);
  CHECK(c.train.seed == 16);
  CHECK(c.train.data_seed == 1000);
  CHECK(c.optimizer.betas == config::Betas{0.8, 0.99});
  CHECK_FALSE(c.train.compile_model);
  CHECK(c.model.tie_embeddings);
  CHECK(c.model.qk_norm);
  CHECK_FALSE(c.data.pin_memory);
  CHECK(c.metrics.wandb_run_name == "123e456");  // the declared type decides, not the literal
  CHECK(c.data.tokenizer_path == "123");
  CHECK(std::isinf(c.train.grad_clip_norm));
  CHECK(c.data.anneal_weights == config::Numbers{{"code", 0.75}, {"web", 0.25}});
  CHECK(c.checkpoint.exclude_from_loading == config::Strings{"optimizer", "x y"});
  CHECK(c.data.file_pattern == "[0-9]*.npy");
  CHECK(c.data.hf_dataset_split == "{a,b}");
}

TEST_CASE("config: null and None empty an optional key, and only an optional one", "[config]") {
  const std::string toml = "[model]\nn_kv_heads = 4\n[checkpoint]\nload_path = \"x\"\n[checkpoint.dyn_ckpt_window]\nstop = 4\n";
  const config::Config c =
      good(load_job({toml, {"--model.n_kv_heads=None", "--checkpoint.load_path=null", "--checkpoint.dyn_ckpt_window=None"}}));
  CHECK_FALSE(c.model.n_kv_heads);
  CHECK_FALSE(c.checkpoint.load_path);
  CHECK_FALSE(c.checkpoint.dyn_ckpt_window);
  CHECK(good(load_cli({"--checkpoint.load_path='None'"})).checkpoint.load_path == "None");
  CHECK(problem(load_cli({"--train.seed=None"})) == "'None' cannot be empty; it is an integer, 42 by default");
  CHECK(problem(load_cli({"--data.dataset_path=null"})).find("cannot be empty") != std::string::npos);
}

TEST_CASE("config: lists of tables are reached by index, and the index behind the last appends", "[config]") {
  const std::string toml = "[[data.datasets]]\npath = \"a\"\n[[data.datasets]]\npath = \"b\"\n";
  const config::Config c =
      good(load_job({toml, {"--data.datasets[0].weight=0.7", "--data.datasets[2].path=c", "--data.datasets[2].weight=2"}}));
  REQUIRE(c.data.datasets.size() == 3);
  CHECK(c.data.datasets[0].weight == 0.7);
  CHECK(c.data.datasets[0].path == "a");
  CHECK(c.data.datasets[2] == config::DatasetSource{"c", 2.0, "", "", ""});
  CHECK(problem(load_job({toml, {"--data.datasets[9].path=c"}})) == "index 9 is past the end; the list has 2 entries");
  CHECK(problem(load_cli({"--train.seed[0]=1"})) == "train.seed (['1']) is not an integer");
}

TEST_CASE("config: a literal list or table replaces a list and fills a section", "[config]") {
  const config::Config c =
      good(load_job({"[[data.datasets]]\npath = \"old\"\n[model]\ndim = 128\n",
                     {"--data.datasets=[{'path': '/a', 'weight': 0.7}, {'path': '/b'}]", "--model={n_heads = 4, 'n_layers': 2}"}}));
  REQUIRE(c.data.datasets.size() == 2);
  CHECK(c.data.datasets[0].path == "/a");
  CHECK(c.model.dim == 128);
  CHECK(c.model.n_heads == 4);
  CHECK(c.model.n_layers == 2);
}

TEST_CASE("config: the last of two equal options wins", "[config]") {
  CHECK(good(load_cli({"--train.seed=1", "--train.seed=2"})).train.seed == 2);
}

TEST_CASE("config: 64-bit integers are exact, and floating-point numbers stand for integers only where they are", "[config]") {
  CHECK(good(load_cli({"--train.seed=9007199254740993"})).train.seed == 9007199254740993);
  CHECK(good(load_toml("[train]\nseed = -9223372036854775808\n")).train.seed == std::numeric_limits<std::int64_t>::min());
  CHECK(good(load_toml("[train]\nmax_steps = 1e3\n")).train.max_steps == 1000);
  CHECK(problem(load_cli({"--train.seed=9223372036854775808.0"})).find("past 2^53") != std::string::npos);
  CHECK(problem(load_toml("[train]\nseed = 1e17\n")).find("past 2^53") != std::string::npos);
  CHECK(problem(load_cli({"--train.max_steps=1e-3"})) == "'1e-3' is not an integer");
  CHECK(problem(load_toml("[optimizer]\neps = 9007199254740993\n")).find("cannot be held exactly") != std::string::npos);
}

TEST_CASE("config: files are read by their types alone", "[config]") {
  const std::string value =
      GENERATE("batch_size = \"16\"", "batch_size = 4.9", "batch_size = true", "batch_size = [1]", "compile_model = 1",
               "compile_model = \"true\"", "mixed_precision = 16", "grad_clip_norm = \"1\"", "z_loss_weight = {}");
  CAPTURE(value);
  CHECK(problem(load_toml("[train]\n" + value + "\n")).find(value.substr(0, value.find(' '))) != std::string::npos);
}

TEST_CASE("config: a boolean is one of the usual words or nothing", "[config]") {
  CHECK(problem(load_cli({"--train.compile_model=maybe"})) == "'maybe' is not a boolean; write true or false");
  CHECK(problem(load_cli({"--train.compile_model=2"})) == "'2' is not a boolean; write true or false");
  CHECK(problem(load_cli({"--train.compile_model="})) == "'' is not a boolean; write true or false");
}

TEST_CASE("config: zero is a value, not a gap", "[config]") {
  const config::Config c =
      good(load_toml("[optimizer]\nweight_decay = 0.0\neps = 0.0\n[scheduler]\nmin_lr_ratio = 0.0\nwarmup_steps = 0\n"
                     "[train]\nseed = 0\ndata_seed = 0\n[model]\nmoe_aux_loss_weight = 0.0\ninit_std = 0.0\n"));
  CHECK(c.optimizer.weight_decay == 0);
  CHECK(c.optimizer.eps == 0);
  CHECK(c.scheduler.min_lr_ratio == 0);
  CHECK(c.scheduler.warmup_steps == 0);
  CHECK(c.train.seed == 0);
  CHECK(c.train.data_seed == 0);
  CHECK(c.model.moe_aux_loss_weight == 0);
  CHECK(problem(load_toml("[scheduler]\ndecay_steps = 0\n")) ==
        "scheduler.decay_steps (0) must be positive; leave it out to decay until train.max_steps");
}

TEST_CASE("config: numbers that are not finite are refused where they make no sense", "[config]") {
  CHECK(problem(load_toml("[optimizer]\nlr = inf\n")) == "optimizer.lr (inf) must be positive and finite");
  CHECK(problem(load_toml("[optimizer]\nlr = nan\n")) == "optimizer.lr (nan) must be positive");
  CHECK(problem(load_cli({"--optimizer.lr=1e999"})).starts_with("'1e999' does not fit"));
  CHECK(problem(load_cli({"--train.grad_clip_norm=nan"})) == "nan must be positive");
}

TEST_CASE("config: arguments that are no options are problems, not noise", "[config]") {
  const std::string argument = GENERATE("model.dim=512", "-x", "run", "--", "--=1", "--model.=1", "--.dim=1", "--model.dim[=1",
                                        "--data.datasets[x].path=1", "--data.datasets[0]x.path=1", "");
  CAPTURE(argument);
  const config::Loaded loaded = load_cli({argument});
  REQUIRE(loaded.report.problems.size() == 1);
  CHECK(loaded.report.problems[0].origin.file == argument.substr(0, argument.starts_with("--") ? argument.find('=') : std::string::npos));
}

TEST_CASE("config: lists take a single value, pairs take two", "[config]") {
  CHECK(good(load_toml("[checkpoint]\nexclude_from_loading = \"model\"\n")).checkpoint.exclude_from_loading == config::Strings{"model"});
  CHECK(good(load_cli({"--optimizer.betas=0.8, 0.99"})).optimizer.betas == config::Betas{0.8, 0.99});
  CHECK(problem(load_cli({"--optimizer.betas=0.9"})) == "'0.9' is not a pair of numbers; write two, like [0.9, 0.95]");
  CHECK(problem(load_cli({"--optimizer.betas=[0.9]"})) == "['0.9'] needs two values, like [0.9, 0.95]");
  CHECK(problem(load_toml("[optimizer]\nbetas = [0.9, 1.0]\n")) == "optimizer.betas[1] (1) must be in [0, 1)");
  CHECK(problem(load_toml("[optimizer]\nbetas = [0.9, \"x\"]\n")) == "optimizer.betas[1] ('x') is not a number");
}

TEST_CASE("config: a number that does not fit is told so, and not called a word", "[config]") {
  const std::string integers = " does not fit: integers go from -2^63 to 2^63 - 1";
  for (const std::string text : {"9223372036854775808", "-9223372036854775809", "1e400", "99999999999999999999"}) {
    CHECK(problem(load_cli({"--train.max_steps=" + text})) == "'" + text + "'" + integers);
  }
  for (const std::string text : {"1e400", "-1e400", "1e-400"}) {
    CHECK(problem(load_cli({"--optimizer.lr=" + text})) == "'" + text + "' does not fit: numbers go from 4.9e-324 to 1.8e308");
  }
  const config::Loaded small = load_toml("# \u00e9\n[optimizer]\n\"lr\" = 1e-400 # too small\n[train]\nz_loss_weight = 0e5\n");
  CHECK(problem(small) == "'1e-400' does not fit: numbers go from 4.9e-324 to 1.8e308");
  CHECK(small.report.problems[0].origin.line == 3);
  CHECK(problem(load_toml("optimizer = { betas = [0.9, 1_0.0e-500] }\n")).starts_with("'1_0.0e-500' does not fit"));
  CHECK(problem(load_cli({"--train.max_steps=1e18"})).find("past 2^53") != std::string::npos);
  CHECK(problem(load_cli({"--train.max_steps=1e"})) == "'1e' is not an integer");
}

TEST_CASE("config: an option without its value asks for one, unless it is a boolean", "[config]") {
  for (const std::string key : {"optimizer.lr", "train.max_steps", "run.name", "optimizer.betas", "hooks", "scheduler.warmup_steps"}) {
    CHECK(problem(load_cli({"--" + key})) == "needs a value: --" + key + "=VALUE");
  }
  CHECK(good(load_cli({"--model.tie_embeddings"})).model.tie_embeddings);
}

}  // namespace kf::test
