// `kf-host config ...`

#include "app/config/config_command.h"

#include <sstream>

#include "app/help/usage.h"
#include "core/error.h"
#include "core/wrap.h"
#include "job.h"

namespace kf::test {
namespace {

std::string config_says(const std::vector<std::string>& args) {
  std::ostringstream out;
  CHECK(config_command(args, reference_catalog(), out) == 0);
  return out.str();
}

std::string config_refuses(const std::vector<std::string>& args) {
  std::ostringstream out;
  try {
    config_command(args, reference_catalog(), out);
  } catch (const Error& error) {
    CHECK(error.code() == Code::config);
    CHECK(out.str().empty());
    return error.what();
  }
  FAIL("was accepted");
  return "";
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("config: explain tells value, origins, type, bounds and doc", "[config]") {
  const TempDir temp;
  temp.write("base.toml", "\n[optimizer]\nlr = 3e-3\n");
  const std::string job = temp.write("job.toml", "extends = \"base.toml\"\n[optimizer]\nlr = 6e-4\n").string();
  const std::string folder = temp.path().string();
  CHECK(config_says({"explain", job, "optimizer.lr", "--optimizer.lr=1e-2"}) ==
        "optimizer.lr = 0.01 from --optimizer.lr, was 0.0006 from " + folder + "/job.toml:3, was 0.003 from " + folder +
            "/base.toml:3, 0.0003 by default\n  type     number\n  allowed  > 0\n  Peak learning rate.\n");
  CHECK(config_says({"explain", "model.n_kv_heads"}) ==
        "model.n_kv_heads = unset by default\n  type     integer, optional\n  allowed  > 0\n  here     32, as model.n_heads\n"
        "  Key and value heads; unset takes n_heads. n_heads must be divisible by it.\n");
  CHECK(has(config_says({"explain", "optimizer.name"}), "allowed  one of adamw, lion, schedule_free_adamw, muon"));
  CHECK(has(config_says({"explain", "checkpoint.dyn_ckpt_window.stop", "--checkpoint.dyn_ckpt_window.stop=9"}),
            "= 9 from --checkpoint.dyn_ckpt_window.stop"));
  CHECK(has(config_says({"explain", "scheduler.inverse_sqrt.power"}), "scheduler.inverse_sqrt.power = 0.5 by default"));
  CHECK(config_refuses({"explain", "optimizer.lrr"}) == "[optimizer] unknown key 'lrr'; did you mean 'lr'?");
  CHECK(config_refuses({"explain", "lr"}) == "unknown key 'lr'; it belongs elsewhere → optimizer.lr");
}

TEST_CASE("config: show prints TOML that show prints again", "[config]") {
  const TempDir temp;
  const std::string first = config_says({"show", "--optimizer.lr=1e-5", "--run.name=x", "--data.dataset_path=/no/such"});
  CHECK(first == config_says({"show", temp.write("x.toml", first).string()}));
  CHECK(has(config_says({"show", "--format", "json"}), "\"n_kv_heads\": 32"));
  CHECK(has(config_refuses({"show", "--format=yaml"}), "must be toml or json"));
}

TEST_CASE("config: --world runs the rules that need the number of ranks", "[config]") {
  config_says({"show", "--distributed.tp=3", "--model.n_heads=3", "--model.dim=96", "--model.ffn_hidden_dim=9", "--model.vocab_size=300"});
  CHECK(has(config_refuses({"show", "--distributed.dp_shard=4", "--world", "8"}), "do not match world_size (8)"));
  CHECK(has(config_refuses({"check", "--world=0"}), "must be a number of ranks"));
}

TEST_CASE("config: check wants the files that show does not", "[config]") {
  const TempDir temp;
  const std::string job = temp.write("job.toml", "[data]\ndataset_path = \"/no/such\"\n").string();
  config_says({"show", job});
  CHECK(has(config_refuses({"check", job}), "does not exist"));
  CHECK(has(config_says({"check", "--train.max_steps=5"}), "warning: scheduler.warmup_steps (2000)"));
  CHECK(has(config_refuses({"check", job, "train.seed=1"}), "train.seed=1"));
}

TEST_CASE("config: diff lists the keys that differ and where they stand", "[config]") {
  const TempDir temp;
  const std::string a = temp.write("a.toml", "[train]\nseed = 1\n").string();
  const std::string b = temp.write("b.toml", "[train]\nseed = 2\n[model]\nn_kv_heads = 4\n").string();
  CHECK(config_says({"diff", a, b}) ==
        "model.n_kv_heads  unset → 4  (default → " + b + ":4)\ntrain.seed  1 → 2  (" + a + ":2 → " + b + ":2)\n");
  CHECK(config_says({"diff", a, a}) == "no differences\n");
  CHECK(has(config_says({"diff", a}), "train.seed  42 → 1"));
}

TEST_CASE("config: runs, checkpoints and folders of Hugging Face stand for their jobs", "[config]") {
  const TempDir temp;
  temp.write("run/job.toml", "[train]\nseed = 1\n");
  temp.write("other/checkpoints/step_2/job.toml", "[train]\nseed = 2\n");
  fs::create_directory_symlink("step_2", temp / "other/checkpoints/latest");
  temp.write("hf/config.json",
             R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2,
                 "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 320, "max_position_embeddings": 2048})");
  const std::string run = (temp / "run").string();
  for (const std::string& other :
       {(temp / "other").string(), (temp / "other/checkpoints").string(), (temp / "other/checkpoints/step_2").string()}) {
    CHECK(has(config_says({"diff", run, other}), "train.seed  1 → 2"));
  }
  CHECK(has(config_says({"show", (temp / "hf").string()}), "vocab_size = 320"));
  CHECK(has(config_says({"check", run}), "no problems"));
  CHECK(has(config_refuses({"show", temp.path().string()}), "a folder without a job"));
}

TEST_CASE("config: values may stand behind a blank", "[config]") {
  CHECK(has(config_says({"show", "--optimizer.lr", "1e-5", "--train.seed", "-3", "--model.tie_embeddings", "yes", "--model.qk_norm"}),
            "lr = 1e-05"));
  CHECK(has(config_says({"explain", "train.seed", "--train.seed", "-3"}), "train.seed = -3 from --train.seed"));
  CHECK(has(config_says({"explain", "model.tie_embeddings", "--model.tie_embeddings", "no"}), "= false from"));
  const TempDir temp;
  const std::string job = temp.write("job.toml", "[train]\nseed = 1\n").string();
  CHECK(has(config_says({"show", "--model.tie_embeddings", job}), "seed = 1"));  // a flag takes no job
  CHECK(has(config_refuses({"show", "--optimizer.lr"}), "needs a value: --optimizer.lr=VALUE"));
  CHECK(has(config_refuses({"show", "--optimizer.lr", "--train.seed=1"}), "needs a value"));
}

TEST_CASE("config: presets are one list, of models and of jobs", "[config]") {
  const std::string all = config_says({"presets"});
  for (const char* name : {"llama3-8b", "train/debug", "model/llama_7b"}) {
    CHECK(has(all, name));
  }
  for (const std::string& line : split(all, '\n')) {
    CHECK(line.size() <= 80);
  }
  CHECK_FALSE(has(config_says({"presets", "llama"}), "debug"));
  CHECK(has(config_refuses({"presets", "xyzzy"}), "no preset matches"));
  const TempDir temp;
  const std::string job = config_says({"new", "llama3-8b"});
  CHECK(has(job, "# llama3-8b: 8.0 B parameters"));
  CHECK(has(config_says({"show", temp.write("new.toml", job).string(), "--train.loss_fn=cross_entropy"}), "ffn_hidden_dim = 14336"));
  CHECK(config_says({"docs", "presets"}) == read_file(fs::path(KF_SOURCE_DIR) / "docs/presets.md"));
}

TEST_CASE("config: docs/metrics.md is what names.def says", "[config]") {
  INFO("run `kf-host config docs metrics > docs/metrics.md`");
  CHECK(config_says({"docs", "metrics"}) == read_file(fs::path(KF_SOURCE_DIR) / "docs/metrics.md"));
  CHECK(has(config_refuses({"docs", "metric"}), "config docs knows 'presets', 'metrics', 'unbuilt' and 'man', not 'metric'"));
}

TEST_CASE("config: check says what cannot run yet instead of 'no problems'", "[config]") {
  const std::vector<std::string> small{"check", "--model.dim=64", "--model.n_heads=4", "--train.max_steps=5", "--scheduler.warmup_steps=0"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), small.begin(), small.end());
    return config_says(more);
  };
  CHECK(has(with({}), ": no problems\n"));
  CHECK(has(with({"--world", "2"}), ": no problems\n"));
  for (const std::string& text : {with({"--train.mixed_precision=fp8"}), with({"--train.mixed_precision=fp8", "--world=2"})}) {
    CHECK(has(text, "it cannot run: train.mixed_precision = 'fp8' is not built yet"));
  }
}

TEST_CASE("config: keys finds by section, pattern and word", "[config]") {
  CHECK(has(config_says({"keys", "train"}), "train.seq_len"));
  CHECK_FALSE(has(config_says({"keys", "train"}), "optimizer."));
  CHECK(has(config_says({"keys", "*lr*"}), "scheduler.min_lr_ratio"));
  CHECK(has(config_says({"keys", "warm-up"}), "scheduler.warmup_steps"));
  CHECK(has(config_refuses({"keys", "xyzzy"}), "no setting matches 'xyzzy'"));
}

TEST_CASE("config: new prints a job that loads, a preset's or a small one", "[config]") {
  const TempDir temp;
  for (const std::string& text :
       {config_says({"new"}), config_says({"new", (fs::path(KF_SOURCE_DIR) / "configs/train/debug.toml").string()})}) {
    config_says({"show", temp.write("new.toml", text).string()});
  }
  CHECK(has(config_refuses({"new", "debugg"}), "no preset 'debugg'"));
}

TEST_CASE("config: a model's name stands for a job of it", "[config]") {
  CHECK(config_says({"show", "llama3-8b"}) == config_says({"show", "--model.preset=llama3-8b"}));
  CHECK(has(config_says({"explain", "model.dim", "llama3-8b"}), "4096"));
  CHECK(has(config_says({"show", "llama3-8b", "--model.dim=2048"}), "dim = 2048"));
}

TEST_CASE("config: wrong calls say what is right", "[config]") {
  CHECK(has(config_refuses({"chekc"}), "did you mean 'check'?"));
  CHECK(has(config_refuses({}), "usage: kf-host config"));
  CHECK(has(config_refuses({"explain"}), "usage: kf-host config explain"));
  CHECK(has(config_refuses({"show", "x.lua"}), "scripts cannot be read here"));
}

TEST_CASE("config: a script's settings and parts come through its reader", "[config]") {
  const RecipeReader reader = [](const fs::path& path) {
    Recipe recipe;
    recipe.catalog = reference_catalog();
    recipe.catalog["optimizer"].push_back(part("mine"));
    config::Table optimizer;
    optimizer["name"] = config::Node(std::string("mine"), {config::Origin::Kind::recipe, path.string(), 3, 1, ""});
    config::Table table;
    table["optimizer"] = config::Node(optimizer);
    recipe.table = config::Node(table, {config::Origin::Kind::recipe, path.string(), 1, 1, ""});
    return recipe;
  };
  std::ostringstream out;
  config_command({"explain", "r.lua", "optimizer.name"}, reference_catalog(), out, {.recipes = reader});
  CHECK(has(out.str(), "optimizer.name = \"mine\" from r.lua:3, \"adamw\" by default"));
}

TEST_CASE("config: explain reaches into lists, whether or not the job has the entry", "[config]") {
  CHECK(has(config_says({"explain", "data.datasets[0].weight"}), "data.datasets[0].weight = 1.0 by default"));
  CHECK(has(config_says({"explain", "data.datasets[1].weight", "--data.datasets=[{path='a'}, {path='b', weight=3}]"}), "= 3.0 from"));
  CHECK(has(config_says({"explain", "phases[0].steps"}), "phases[0].steps = unset by default"));
  std::ostringstream without_hooks;
  CHECK(config_command({"explain", "hooks"}, config::Catalog(), without_hooks) == 0);
  CHECK(has(without_hooks.str(), "allowed  what a script registers; no hook is here"));
  CHECK(has(config_refuses({"explain", "data.datasets.weight"}), "unknown key 'weight'"));
  CHECK(has(config_refuses({"explain", "hook.x.y"}), "known here: nothing"));
}

TEST_CASE("config: no option is ignored", "[config]") {
  for (const std::string command : {"keys", "schema", "new", "docs", "meta"}) {
    CHECK(has(config_refuses({command, "--optimizer.lr=1"}), "has no option '--optimizer.lr=1'"));
    CHECK(has(config_refuses({command, "--world=2"}), "--world means nothing here"));
  }
  for (const std::string command : {"check", "explain", "diff", "keys"}) {
    CHECK(has(config_refuses({command, "--format=json"}), "--format belongs to `kf-host config show`"));
  }
}

TEST_CASE("help: pages are written as a terminal of 80 columns shows them", "[help]") {
  for (const char* page :
       {usage::kTrain,      usage::kGenerate, usage::kEval,      usage::kConfig,    usage::kPlan,      usage::kProfile, usage::kNew,
        usage::kDoctor,     usage::kData,     usage::kDataInfo,  usage::kDataCache, usage::kTokenizer, usage::kExport,  usage::kAdapter,
        usage::kCheckpoint, usage::kSweep,    usage::kReplay,    usage::kAttach,    usage::kReload,    usage::kRuns,    usage::kPlot,
        usage::kCompare,    usage::kTail,     usage::kReproduce, usage::kBundle,    usage::kReport,    usage::kServe,   usage::kRegistry,
        usage::kTest,       usage::kLua,      usage::kCompletion}) {
    CHECK(folded(page) == page);
  }
}

}  // namespace kf::test
