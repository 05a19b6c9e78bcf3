// The known models: their parameter counts against the published ones, their growth, and who wins.

#include "config/load/model_presets.h"

#include "config/plan/derived.h"
#include "job.h"

namespace kf::test {
namespace {

config::Config of_preset(const std::string& name, const std::vector<std::string>& more = {}) {
  std::vector<std::string> overrides{"--model.preset=" + name, "--train.seq_len=128"};
  overrides.insert(overrides.end(), more.begin(), more.end());
  return good(load_cli(overrides));
}

struct Published {
  const char* preset;
  std::int64_t parameters;
};

}  // namespace

TEST_CASE("presets: every dense model has the published number of parameters", "[presets]") {
  // "Model size" of the model's page on huggingface.co, which counts the elements of its safetensors files; tied heads count once. Llama 2
  // and GPT-2: the sums of their published tensors. GPT-2's paper rounds them to 124M, 355M, 774M and 1558M.
  const Published p = GENERATE(values<Published>({
      {"llama2-7b", 6738415616},    {"llama2-13b", 13015864320},   {"llama2-70b", 68976648192},   {"llama3-8b", 8030261248},
      {"llama3-70b", 70553706496},  {"llama3.1-8b", 8030261248},   {"llama3.1-70b", 70553706496}, {"llama3.1-405b", 405853388800},
      {"llama3.2-1b", 1235814400},  {"llama3.2-3b", 3212749824},   {"llama3.3-70b", 70553706496}, {"mistral-7b", 7241732096},
      {"qwen2.5-0.5b", 494032768},  {"qwen2.5-1.5b", 1543714304},  {"qwen2.5-3b", 3085938688},    {"qwen2.5-7b", 7615616512},
      {"qwen2.5-14b", 14770033664}, {"qwen2.5-32b", 32763876352},  {"qwen2.5-72b", 72706203648},  {"qwen3-0.6b", 596049920},
      {"qwen3-1.7b", 1720574976},   {"qwen3-4b", 4022468096},      {"qwen3-8b", 8190735360},      {"qwen3-14b", 14768307200},
      {"qwen3-32b", 32762123264},   {"gemma-2b", 2506172416},      {"gemma-7b", 8537680896},      {"gemma2-2b", 2614341888},
      {"gemma2-9b", 9241705984},    {"gemma2-27b", 27227128320},   {"gemma3-1b", 999885952},      {"olmo2-1b", 1484916736},
      {"olmo2-7b", 7298617344},     {"olmo2-13b", 13716198400},    {"gpt2", 124439808},           {"gpt2-medium", 354823168},
      {"gpt2-large", 774030080},    {"gpt2-xl", 1557611200},       {"phi3-mini", 3821079552},     {"phi3-medium", 13960238080},
      {"smollm3-3b", 3075098624},   {"granite3.1-2b", 2533531648}, {"starcoder2-3b", 3030371328}, {"starcoder2-7b", 7173923840},
  }));
  CAPTURE(p.preset);
  CHECK(config::parameter_count(of_preset(p.preset).model) == p.parameters);
}

TEST_CASE("presets: every model with experts has the published number of parameters", "[presets]") {
  // As above. gpt-oss: its model card counts 20.9 and 116.8 billion. DeepSeek V3: without the layer that looks ahead.
  const Published p = GENERATE(values<Published>({
      {"mixtral-8x7b", 46702792704},
      {"qwen3-30b-a3b", 30532122624},
      {"qwen1.5-moe-a2.7b", 14315784192},
      {"gpt-oss-20b", 20914757184},
      {"gpt-oss-120b", 116829156672},
      {"deepseek2-16b", 15706484224},
      {"deepseek2-236b", 235741434880},
  }));
  CAPTURE(p.preset);
  CHECK(config::parameter_count(of_preset(p.preset).model) == p.parameters);
}

TEST_CASE("presets: models whose pages round have the published size to three digits", "[presets]") {
  const auto [preset, billions] = GENERATE(values<std::pair<const char*, double>>({
      {"command-r7b", 8.03},
      {"olmo2-32b", 32.2},
      {"olmo3-7b", 7.30},
      {"granite3.1-8b", 8.17},
      {"gpt3-175b", 175},
      {"deepseek3-671b", 671},
      {"qwen3-coder-480b-a35b", 480},
      {"kimi-k2-1t", 1026},
      {"gemma4-26b", 25.2},  // the model cards of Gemma 4
      {"gemma4-31b", 30.7},
      {"llama4-17b-16e", 107.8},  // without what sees
      {"llama4-17b-128e", 400.7},
  }));
  CAPTURE(preset);
  CHECK(static_cast<double>(config::parameter_count(of_preset(preset).model)) / 1e9 == Approx(billions).epsilon(0.004));
}

TEST_CASE("presets: every model is a job without problems or keys that do nothing", "[presets]") {
  for (const std::string& name : config::model_preset_names()) {
    CAPTURE(name);
    const config::Loaded loaded = load_cli({"--model.preset=" + name, "--train.seq_len=128", "--train.compile_model=false"});
    INFO(messages(loaded) << join(loaded.report.warnings, "\n"));
    CHECK(loaded.report.problems.empty());
    CHECK(loaded.report.warnings.empty());
  }
}

TEST_CASE("presets: the job's own keys win, and the log says which", "[presets]") {
  const config::Loaded loaded = load_job({"[model]\npreset = \"llama3-8b\"\nn_layers = 2\nvocab_size = 128256\n", {"--model.dim=512"}});
  const config::Config config = good(loaded);
  CHECK(config.model.n_layers == 2);
  CHECK(config.model.dim == 512);
  CHECK(config.model.ffn_hidden_dim == 14336);
  REQUIRE(loaded.report.warnings.size() == 1);
  CHECK_THAT(loaded.report.warnings[0], Catch::Matchers::Contains("model.n_layers = 2") && Catch::Matchers::Contains("instead of 32") &&
                                            Catch::Matchers::Contains("model.dim = 512 (--model.dim) instead of 4096") &&
                                            !Catch::Matchers::Contains("vocab_size"));
}

TEST_CASE("presets: scale doubles heads and feed-forward, then width, then depth", "[presets]") {
  const config::ModelConfig one = of_preset("llama3-8b").model;
  const config::ModelConfig two = of_preset("llama3-8b", {"--model.scale=2"}).model;
  CHECK(two.n_layers == one.n_layers);
  CHECK(two.n_heads == 2 * one.n_heads);
  CHECK(*two.n_kv_heads == 2 * *one.n_kv_heads);
  CHECK(*two.ffn_hidden_dim == 2 * *one.ffn_hidden_dim);
  CHECK(two.dim == one.dim);
  CHECK(config::head_dim(two) == config::head_dim(one));
  const config::ModelConfig four = of_preset("llama3-8b", {"--model.scale=4"}).model;
  CHECK(four.n_layers == one.n_layers);
  CHECK(four.dim == 2 * one.dim);
  CHECK(four.n_heads == 2 * one.n_heads);
  const config::ModelConfig eight = of_preset("llama3-8b", {"--model.scale=8"}).model;
  CHECK(eight.n_layers == 2 * one.n_layers);
  CHECK(eight.dim == 2 * one.dim);
  CHECK(eight.n_heads == 2 * one.n_heads);
  const config::ModelConfig sixteen = of_preset("llama3-8b", {"--model.scale=16"}).model;
  CHECK(sixteen.n_layers == 2 * one.n_layers);
  CHECK(sixteen.dim == 2 * one.dim);
  CHECK(sixteen.n_heads == 4 * one.n_heads);
  const config::ModelConfig gemma = of_preset("gemma4-31b", {"--model.scale=4"}).model;
  CHECK(gemma.global_kv_heads == 8);
  const config::ModelConfig narrow = of_preset("qwen3-custom-30b-a3b", {"--model.scale=4", "--train.compile_model=false"}).model;
  CHECK(narrow.attn_out_dim == 2 * 768);
}

TEST_CASE("presets: config explain names the preset", "[presets]") {
  const config::Loaded loaded = load_cli({"--model.preset=qwen3-0.6b"});
  const config::Node* node = loaded.merged.find("model")->table()->find("dim");
  REQUIRE(node != nullptr);
  CHECK(config::to_text(node->origin) == "preset qwen3-0.6b");
}

}  // namespace kf::test
