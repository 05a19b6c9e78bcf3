// Folders for Hugging Face's libraries, from outside: what is written, when, and that it is the same model again.

#include <catch2/catch.hpp>

#include <unistd.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "e2e/toy.h"

namespace fs = std::filesystem;
using kf::test::Finished;
using kf::test::Toy;
using nlohmann::json;

namespace {

Finished good(Finished done) {
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  return done;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

json json_of(const Toy& toy, const fs::path& name) { return json::parse(toy.read(name)); }

/// "loss 5.1234": what an evaluation says.
std::string loss_of(const Toy& toy, const std::string& model) {
  const std::string said = good(toy.host({"eval", model, "--data", "text"})).out;
  const std::size_t at = said.find("loss");
  REQUIRE(at != std::string::npos);
  return said.substr(at, said.find('\n', at) - at);
}

std::string text_of(const Toy& toy, const std::string& model) {
  return good(toy.host({"generate", model, "--prompt", "line 3", "--temperature", "0", "--max-new-tokens", "12"})).out;
}

}  // namespace

TEST_CASE("export: the folder is the same model, for evaluation, text, a new run, and in shards", "[export]") {
  const Toy toy;
  good(toy.train({"--run.name=a"}));
  const std::string said = good(toy.host({"export", "runs/a", "out", "--dtype", "float32"})).out;
  CHECK(has(said, "a llama model"));
  CHECK(loss_of(toy, "out") == loss_of(toy, "runs/a"));
  CHECK(text_of(toy, "out") == text_of(toy, "runs/a"));
  CHECK(json_of(toy, "out/config.json")["dtype"] == "float32");
  CHECK(json_of(toy, "out/config.json")["architectures"][0] == "LlamaForCausalLM");

  good(toy.host({"export", "runs/a/checkpoints/step_5", "parts", "--dtype=float32", "--max-shard-size=50KB"}));
  CHECK_FALSE(fs::exists(toy / "parts/model.safetensors"));
  CHECK(json_of(toy, "parts/model.safetensors.index.json")["weight_map"].size() == 21);
  CHECK(text_of(toy, "parts") == text_of(toy, "runs/a/checkpoints/step_5"));

  const std::vector<std::string> one_step{"--train.max_steps=1", "--eval.at_start=true"};
  std::vector<std::string> from_export = one_step, from_run = one_step;
  from_export.insert(from_export.end(), {"--run.name=b", "--checkpoint.init_from=out"});
  from_run.insert(from_run.end(), {"--run.name=c", "--checkpoint.init_from=runs/a"});
  good(toy.train(from_export));
  good(toy.train(from_run));
  CHECK(toy.series("b", "loss") == toy.series("c", "loss"));
}

TEST_CASE("export: what a run learned from is not asked for, whatever its data was", "[export]") {
  const Toy toy;
  const std::string head = "extends = 'toy.toml'\n[run]\nname = 'a'\n[train]\nmax_steps = 2\n[eval]\nenabled = false\n";
  const char* const messages = R"({"messages": [{"role": "user", "content": "line 1"}, {"role": "assistant", "content": "line 2"}]})";
  for (int i = 0; i < 8; ++i) {
    toy.write("chats/" + std::to_string(i) + ".jsonl", messages);
  }
  const std::string data = GENERATE(
      std::string(
          "shuffle = 'permutation'\nmix_block = 4\nmix_stop = 'first'\n[[data.datasets]]\nname = 'a'\npath = 'text'\n"
          "[[data.datasets]]\nname = 'b'\npath = 'text'\n[[data.phases]]\nstart_step = 1\n[data.phases.dataset_weights]\na = 0.1\n"),
      std::string("loss_on = 'answers'\npack_method = 'best_fit'\n[[data.datasets]]\npath = 'chats'\nmessages_field = 'messages'\n"));
  CAPTURE(data);
  toy.write("job.toml", head + "[data]\n" + data);
  good(toy.host({"job.toml", "--checkpoint.interval=2", "--scheduler.warmup_steps=0", "--data.dataset_path=", "--data.file_pattern="}));
  fs::rename(toy / "text", toy / "gone");
  fs::remove_all(toy / "chats");
  for (const Finished& done : {toy.host({"export", "runs/a", "out"}), toy.host({"export", "runs/a", "out.gguf"}),
                               toy.host({"generate", "runs/a", "--prompt", "line", "--max-new-tokens", "3"})}) {
    CHECK(has(good(done).err, "no effect") == false);
  }
}

TEST_CASE("export: a run of a Hugging Face folder exports its files again, also when the folder is gone", "[export]") {
  const Toy toy;
  good(toy.train({"--run.name=a"}));
  good(toy.host({"export", "runs/a", "base", "--dtype", "float32"}));
  json config = json_of(toy, "base/config.json");
  config["bos_token_id"] = 7;
  toy.write("base/config.json", config.dump());
  toy.write("base/generation_config.json", R"({"eos_token_id": 256, "temperature": 0.5})");
  good(toy.train({"--run.name=b", "--checkpoint.init_from=base", "--model.max_seq_len=128", "--checkpoint.export_dtype=float16"}));
  fs::rename(toy / "base", toy / "elsewhere");
  good(toy.host({"export", "runs/b", "again"}));
  const json written = json_of(toy, "again/config.json");
  CHECK(written["bos_token_id"] == 7);
  CHECK(written["max_position_embeddings"] == 128);
  CHECK(written["dtype"] == "float16");
  CHECK(toy.read("again/generation_config.json") == R"({"eos_token_id": 256, "temperature": 0.5})");
  CHECK(toy.read("again/tokenizer.json") == toy.read("elsewhere/tokenizer.json"));
}

TEST_CASE("export: again into its folder, what it wrote is replaced and what its user put there stays", "[export]") {
  const Toy toy;
  good(toy.train({"--run.name=a"}));
  good(toy.host({"export", "runs/a/checkpoints/step_5", "hub/real", "--max-shard-size=50KB"}));
  fs::create_directory_symlink("hub/real", toy / "link");
  toy.write("hub/real/README.md", "my model");
  toy.write("hub/real/results.json", "{}");
  toy.write("hub/real/mine.safetensors", "not of an export");
  toy.write("hub/real/.git/objects/aa/bb", "a blob");
  toy.write("hub/real/tokenizer_config.json", R"({"mine": true})");
  toy.write("hub/real/config.json", "{}");
  fs::create_symlink("../elsewhere", toy / "hub/real/link");
  fs::create_hard_link(toy / "hub/real/README.md", toy / "same");

  const Finished again = good(toy.host({"export", "runs/a", "link/"}));
  CHECK(has(again.err, "tokenizer_config.json is not as an export wrote it, and stays"));
  CHECK(fs::is_symlink(toy / "link"));
  CHECK(toy.read("hub/real/README.md") == "my model");
  CHECK(fs::equivalent(toy / "same", toy / "hub/real/README.md"));
  CHECK(toy.read("hub/real/results.json") == "{}");
  CHECK(toy.read("hub/real/mine.safetensors") == "not of an export");
  CHECK(toy.read("hub/real/.git/objects/aa/bb") == "a blob");
  CHECK(toy.read("hub/real/tokenizer_config.json") == R"({"mine": true})");
  CHECK(fs::read_symlink(toy / "hub/real/link") == "../elsewhere");
  CHECK(json_of(toy, "hub/real/config.json")["model_type"] == "llama");
  CHECK_FALSE(fs::exists(toy / "hub/real/model.safetensors.index.json"));
  CHECK_FALSE(fs::exists(toy / "hub/real/model-00001-of-00003.safetensors"));
  good(toy.host({"export", "runs/a", "fresh"}));
  for (const char* file : {"model.safetensors", "tokenizer.json"}) {
    CHECK(toy.read(fs::path("hub/real") / file) == toy.read(fs::path("fresh") / file));
  }
  CHECK(std::distance(fs::directory_iterator(toy / "hub"), fs::directory_iterator()) == 1);

  toy.write("notes/a.txt", "no export");
  CHECK(has(toy.host({"export", "runs/a", "notes"}).err, "is no export"));
  CHECK(toy.read("notes/a.txt") == "no export");
}

TEST_CASE("export: what killed processes left goes, and what living ones write stays", "[export]") {
  const Toy toy;
  const std::string gone = "99999999", alive = std::to_string(::getpid());
  good(toy.train({"--run.name=a", "--train.max_steps=5"}));
  for (const std::string& pid : {gone, alive}) {
    toy.write(".out.tmp-" + pid + "/model.safetensors", "half");
    toy.write(".other.tmp-" + pid + "/model.safetensors", "half");
    toy.write("out.gguf.tmp" + pid, "half");
    toy.write("runs/a/exports/.step_5.tmp-" + pid + "/model.safetensors", "half");
  }
  toy.write(".out.tmp-" + gone + "-old/README.md", "of an export that could not be replaced at once");
  good(toy.host({"export", "runs/a", "out"}));
  CHECK(fs::exists(toy / (".out.tmp-" + gone + "-old")));
  good(toy.host({"export", "runs/a", "out"}));
  CHECK_FALSE(fs::exists(toy / (".out.tmp-" + gone + "-old")));
  good(toy.host({"export", "runs/a", "out.gguf"}));
  good(toy.train({"--run.name=a"}));
  for (const char* left : {".out.tmp-", "out.gguf.tmp", "runs/a/exports/.step_5.tmp-"}) {
    CAPTURE(left);
    CHECK_FALSE(fs::exists(toy / (left + gone)));
    CHECK(fs::exists(toy / (left + alive)));
  }
  CHECK(fs::exists(toy / (".other.tmp-" + gone)));
}

TEST_CASE("export: where nothing can be written, and a family that does not fit, are said as they are", "[export]") {
  const Toy toy;
  good(toy.train({"--run.name=a", "--train.max_steps=1", "--scheduler.warmup_steps=0", "--checkpoint.interval=1"}));
  const Finished no_folder = toy.host({"export", "runs/a", "/proc/x"});
  CHECK(no_folder.status == 6);
  CHECK(has(no_folder.err, "cannot write /proc/x: No such file or directory; name a folder elsewhere"));
  const Finished misfit = toy.host({"export", "runs/a", "out", "--family", "gpt2"});
  CHECK(misfit.status == 2);
  CHECK(has(misfit.err, "'gpt2' of Hugging Face does not have the settings of this model; what differs:"));
}

TEST_CASE("export: GPT-2 without biases is GPT-2 with zeros", "[export]") {
  const Toy toy;
  good(toy.train({"--run.name=a", "--model.norm_type=layernorm", "--model.norm_bias=false", "--model.activation=gelu_tanh",
                  "--model.mlp_gated=false", "--model.ffn_hidden_dim=128", "--model.n_kv_heads=4", "--model.pos_embedding=learned",
                  "--model.tie_embeddings=true"}));
  CHECK(has(good(toy.host({"export", "runs/a", "out", "--dtype", "float32"})).out, "a gpt2 model"));
  CHECK(loss_of(toy, "out") == loss_of(toy, "runs/a"));
  CHECK(text_of(toy, "out") == text_of(toy, "runs/a"));
}

TEST_CASE("export: while a run is on, by its interval and on request", "[export]") {
  const Toy toy;
  toy.write("s.lua", R"(
    return { extends = 'toy.toml', checkpoint = { hf_export_interval = 4, interval = 100 }, hooks = {
      { on_step_end = function(ctx)
        if ctx.step == 7 then ctx:request_export() ctx:request_export('mine') end
      end } } })");
  good(toy.host({"s.lua", "--run.name=a", "--checkpoint.keep_last_n=0"}));
  for (const char* folder : {"exports/step_4", "exports/step_7", "exports/step_8", "mine"}) {
    CAPTURE(folder);
    CHECK(fs::exists(toy / "runs/a" / folder / "model.safetensors"));
    CHECK(json_of(toy, fs::path("runs/a") / folder / "config.json")["dtype"] == "bfloat16");
  }
  CHECK(toy.read("runs/a/mine/model.safetensors") == toy.read("runs/a/exports/step_7/model.safetensors"));
  CHECK(fs::exists(toy / "runs/a/checkpoints/step_7"));

  const Finished refused = toy.train({"--run.name=b", "--checkpoint.hf_export_interval=4", "--model.attn_gate=head"});
  CHECK(refused.status == 2);
  CHECK(has(refused.err, "model.attn_gate"));
  CHECK_FALSE(fs::exists(toy / "runs/b"));
}

TEST_CASE("export: pieces of several ranks make the same folder", "[export]") {
  const Toy toy;
  good(toy.host({"--nproc", "2", "toy.toml", "--run.name=a", "--distributed.dp_shard=2", "--checkpoint.hf_export_interval=10"}));
  good(toy.host({"export", "runs/a", "out"}));
  CHECK(toy.read("out/model.safetensors") == toy.read("runs/a/exports/step_10/model.safetensors"));
  CHECK(has(toy.read("runs/a/checkpoints/step_10/model.index.json"), "weight_map"));
}

TEST_CASE("export: the running average, and experts in either form", "[export]") {
  const Toy toy;
  good(toy.train(
      {"--run.name=a", "--averaging.type=ema", "--averaging.beta=0.5", "--model.num_experts=4", "--model.moe_packed_experts=true"}));
  for (const char* kind : {"saved", "average"}) {
    good(toy.host({"export", "runs/a", kind, "--dtype", "float32", "--weights", kind}));
    CHECK(json_of(toy, fs::path(kind) / "config.json")["model_type"] == "mixtral");
    const auto loss = [&](std::vector<std::string> words) {
      words.insert(words.begin(), "eval");
      words.insert(words.end(), {"--data", "text"});
      const std::string said = good(toy.host(words)).out;
      return said.substr(said.find("loss"), 16);
    };
    CHECK(loss({kind}) == loss({"runs/a", "--weights", kind}));
  }
  CHECK(toy.read("saved/model.safetensors") != toy.read("average/model.safetensors"));
}

TEST_CASE("export: several shared experts are one layer there, and are read back as they were", "[export]") {
  const Toy toy;
  const std::vector<std::string> shape{"--model.num_experts=4",      "--model.moe_shared_experts=2", "--model.moe_router=sigmoid",
                                       "--model.moe_bias_rule=sign", "--model.moe_ffn_dim=32",       "--model.moe_shared_ffn_dim=32",
                                       "--train.max_steps=4",        "--checkpoint.interval=4"};
  const auto trained = [&](std::vector<std::string> more) {
    more.insert(more.end(), shape.begin(), shape.end());
    return good(toy.train(more));
  };
  trained({"--run.name=a", "--checkpoint.hf_export_interval=4"});
  CHECK(fs::exists(toy / "runs/a/exports/step_4/config.json"));
  good(toy.host({"export", "runs/a", "out", "--dtype", "float32"}));
  CHECK(text_of(toy, "out") == text_of(toy, "runs/a"));
  trained({"--run.name=b", "--checkpoint.init_from=out"});
  trained({"--run.name=c", "--checkpoint.init_from=runs/a"});
  CHECK(toy.series("b", "loss") == toy.series("c", "loss"));
}

TEST_CASE("export: a model without shared experts is not written as one of a family that always has them", "[export]") {
  const Toy toy;
  const std::vector<std::string> shape{"--model.num_experts=4", "--model.moe_router=softmax"};
  const auto trained = [&](std::vector<std::string> more) {
    more.insert(more.end(), shape.begin(), shape.end());
    return toy.train(more);
  };
  good(trained({"--run.name=a", "--train.max_steps=4", "--checkpoint.interval=4"}));
  const Finished done = toy.host({"export", "runs/a", "out", "--dtype", "float32"});
  if (done.status == 0) {
    CHECK(json_of(toy, "out/config.json")["model_type"] != "qwen2_moe");
    CHECK(text_of(toy, "out") == text_of(toy, "runs/a"));
  } else {
    CHECK(has(done.err, "no family of Hugging Face has the settings"));
    CHECK(trained({"--run.name=b", "--checkpoint.hf_export_interval=4"}).status == 2);
  }
}

TEST_CASE("export: a job whose weights have no place in its family does not start with an interval", "[export]") {
  const Toy toy;
  const Finished done = toy.train({"--run.name=a", "--checkpoint.hf_export_interval=4", "--model.num_experts=4", "--model.mlp_bias=true"});
  INFO(done.err);
  CHECK(done.status != 0);
  CHECK(has(done.err, "checkpoint.hf_export_interval"));
  CHECK_FALSE(fs::exists(toy / "runs/a"));
}

TEST_CASE("export: adapters are merged, or written for PEFT", "[export]") {
  const Toy toy;
  good(toy.train({"--run.name=base", "--train.max_steps=4"}));
  good(toy.train({"--run.name=a", "--checkpoint.init_from=runs/base", "--adapter.name=lora", "--optimizer.lr=0.02"}));
  good(toy.host({"export", "runs/a", "merged", "--dtype", "float32"}));
  CHECK(text_of(toy, "merged") == text_of(toy, "runs/a"));
  CHECK(text_of(toy, "merged") != text_of(toy, "runs/base"));
  good(toy.host({"export", "runs/a", "peft", "--adapter"}));
  good(toy.host({"adapter", "export", "runs/a", "same"}));
  CHECK(toy.read("peft/adapter_model.safetensors") == toy.read("same/adapter_model.safetensors"));
}

TEST_CASE("export: what cannot be is refused, and nothing is left behind", "[export]") {
  const Toy toy;
  good(toy.train({"--run.name=a", "--train.max_steps=5"}));
  toy.write("mine/notes.txt", "mine");
  const auto refused = [&](std::vector<std::string> words, const std::string& part) {
    words.insert(words.begin(), "export");
    const Finished done = toy.host(words);
    CHECK(done.status == 2);
    INFO(done.err);
    CHECK(has(done.err, part));
  };
  refused({"runs/a", "mine"}, "is there and is no export");
  CHECK(toy.read("mine/notes.txt") == "mine");
  refused({"runs/a", "runs/a"}, "is there and is no export");
  refused({"runs/a", "runs/a/checkpoints/latest"}, "is there and is no export");
  refused({"runs/a", "mine/notes.txt"}, "is there and is no export");
  refused({"runs/a", ""}, "`.` is the current one");
  refused({"runs/a", "out/model.safetensors"}, "an export is a folder; `kf-host checkpoint convert");
  refused({"runs/a", "out", "--family", "qwen3"}, "model.qk_norm");
  refused({"runs/a", "out", "--family", "lama"}, "did you mean 'llama'");
  refused({"runs/a", "out", "--max-shard-size", "many"}, "5GB");
  refused({"runs/a", "out", "--dtype", "int8"}, "bfloat16");
  refused({"runs/a", "out", "--adapter"}, "no adapter");
  CHECK_FALSE(fs::exists(toy / "out"));
  good(toy.host({"export", "runs/a", "out"}));
  good(toy.host({"export", "runs/a", "out", "--dtype", "float16"}));
  CHECK(json_of(toy, "out/config.json")["dtype"] == "float16");
}

namespace {

/// Shapes of models, each of another family.
const std::map<std::string, std::vector<std::string>> kFamilies{
    {"llama", {}},
    {"qwen2", {"attn_bias=qkv"}},
    {"qwen3", {"qk_norm=true"}},
    {"mistral", {"layer_pattern=[\"local\"]", "window=9"}},
    {"olmo2", {"norm_placement=post", "qk_norm=true", "qk_norm_kind=full"}},
    {"gemma2",
     {"norm_placement=sandwich", "norm_unit_offset=true", "embed_scale=0", "activation=gelu_tanh", "mlp_gated=true", "tie_embeddings=true",
      "attn_softcap=50", "final_logit_softcap=30", "layer_pattern=[\"local\",\"global\"]", "window=9"}},
    {"gpt2",
     {"n_kv_heads=4", "norm_type=layernorm", "activation=gelu_tanh", "attn_bias=all", "mlp_bias=true", "pos_embedding=learned",
      "tie_embeddings=true"}},
    {"gpt_neox",
     {"n_kv_heads=4", "norm_type=layernorm", "norm_placement=parallel2", "activation=gelu", "attn_bias=all", "mlp_bias=true",
      "rope_fraction=0.5"}},
    {"phi3", {"rope_fraction=0.5"}},
    {"granite", {"embed_scale=3", "residual_scale=0.5", "attn_scale=0.2", "logit_scale=0.5"}},
    {"mixtral", {"num_experts=4", "moe_top_k=2", "moe_ffn_dim=64", "ffn_hidden_dim=64"}},
    {"deepseek_v3",
     {"n_kv_heads=4", "attention=mla", "mla_q_rank=16", "mla_kv_rank=16", "mla_nope_dim=8", "mla_rope_dim=4", "mla_v_dim=8",
      "rope_layout=interleaved", "num_experts=4", "moe_top_k=2", "moe_ffn_dim=32", "moe_shared_experts=1", "moe_router=sigmoid",
      "moe_bias_rule=sign", "moe_first_dense=1", "mla_norm_eps=1e-6"}},
    {"deepseek_v2",
     {"n_kv_heads=4", "attention=mla", "mla_q_rank=16", "mla_kv_rank=16", "mla_nope_dim=8", "mla_rope_dim=4", "mla_v_dim=8",
      "rope_layout=interleaved", "num_experts=4", "moe_top_k=2", "moe_ffn_dim=32", "moe_shared_experts=3", "moe_router=softmax",
      "moe_norm_topk=false", "mla_norm_eps=1e-6"}},
    {"qwen2_moe",
     {"attn_bias=qkv", "num_experts=4", "moe_top_k=2", "moe_ffn_dim=32", "moe_shared_experts=2", "moe_shared_ffn_dim=24",
      "moe_shared_gate=true", "moe_router=softmax"}},
    {"granitemoeshared",
     {"embed_scale=3", "residual_scale=0.5", "attn_scale=0.2", "logit_scale=0.5", "num_experts=4", "moe_top_k=2", "moe_ffn_dim=32",
      "ffn_hidden_dim=32", "moe_shared_experts=2", "moe_shared_ffn_dim=24"}},
};

/// Of each run and its export, in one process: ids, logits and a prompt beside the export, and what either writes.
constexpr const char* kCompared = R"(
  local kf = require('kf')
  local rows = {}
  for row = 1, 2 do
    rows[row] = {}
    for i = 1, 24 do rows[row][i] = (row * 31 + i * i * 7) % 256 end
  end
  local ids = kf.tensor(rows, { dtype = 'int64' })
  local prompt = kf.tensor({ { 108, 105, 110, 101, 32, 51 } }, { dtype = 'int64' })
  for _, family in ipairs(kf.args) do
    local run, export = kf.load_model('runs/' .. family), kf.load_model(family)
    kf.safetensors.save(family .. '/ids.safetensors', { ids = ids, logits = run(ids), prompt = prompt })
    local options = { temperature = 0, max_new_tokens = 12 }
    for name, model in pairs({ run = run, export = export }) do
      local file = assert(io.open(family .. '/' .. name .. '.txt', 'w'))
      file:write((model:generate('line 3', options)))
      file:close()
    end
  end
)";

}  // namespace

TEST_CASE("export: transformers load toys of fifteen families with the same logits, and write the same text", "[export]") {
  const Toy toy;
  toy.write("compared.lua", kCompared);
  const fs::path libraries = fs::path(KF_SOURCE_DIR) / ".deps/transformers-oracle";
  std::vector<std::string> command{"python3", KF_SOURCE_DIR "/tests/support/transformers_oracle.py"};
  std::vector<std::string> compare{"lua", "compared.lua", "--"};
  for (const auto& [family, settings] : kFamilies) {
    CAPTURE(family);
    std::vector<std::string> options{"--run.name=" + family, "--eval.enabled=false", "--model.norm_eps=1e-5", "--model.rope_theta=10000"};
    for (const std::string& setting : settings) {
      options.push_back("--model." + setting);
    }
    good(toy.train(options));
    good(toy.host({"export", "runs/" + family, family, "--dtype", "float32"}));
    CHECK(json_of(toy, family + "/config.json")["model_type"] == family);
    command.push_back((toy / family).string());
    compare.push_back(family);
  }
  good(toy.host(compare));
  for (const auto& [family, settings] : kFamilies) {
    CAPTURE(family);
    CHECK(!toy.read(family + "/run.txt").empty());
    CHECK(toy.read(family + "/run.txt") == toy.read(family + "/export.txt"));
  }
  if (!fs::exists(libraries / "transformers")) {
    WARN("Python's transformers are not in .deps/transformers-oracle (scripts/transformers.sh): exports are compared with kf-host alone");
    return;
  }
  kf::test::Options options;
  options.env = {{"PYTHONPATH", libraries.string()}, {"LD_LIBRARY_PATH", (libraries / "stubs").string()}, {"HF_HUB_OFFLINE", "1"}};
  std::istringstream lines(good(kf::test::run(command, options)).out);
  std::size_t compared = 0;
  for (std::string line; std::getline(lines, line); ++compared) {
    const json row = json::parse(line);
    CAPTURE(row.dump());
    CHECK(row["missing"].empty());
    CHECK(row["unexpected"].empty());
    CHECK(row["difference"].get<double>() <= 1e-5 * std::max(1.0, row["largest"].get<double>()));
    CHECK(has(toy.read(row["folder"].get<std::string>() + "/run.txt"), row["text"].get<std::string>()));
  }
  CHECK(compared == kFamilies.size());
}
