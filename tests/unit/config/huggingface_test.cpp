// config.json of Hugging Face folders: both spellings, and what is not understood.

#include "config/huggingface/huggingface.h"

#include <cmath>

#include "job.h"

namespace kf::test {
namespace {

using Catch::Matchers::Contains;

const fs::path kModels = fs::path(KF_TEST_DATA) / "hf";

struct Read {
  config::Table model;
  std::string problems;
};

Read read(const std::string& json) {
  const TempDir temp;
  std::vector<std::string> problems;
  Read out;
  out.model = config::model_of_config_json(temp.write("config.json", json), problems);
  out.problems = join(problems, "\n");
  return out;
}

/// A small Llama's config.json with further keys.
Read llama_with(const std::string& more) {
  return read(R"({"model_type": "llama", "hidden_size": 32, "num_hidden_layers": 4, "num_attention_heads": 4, "vocab_size": 99,
                  "intermediate_size": 48, "max_position_embeddings": 64)" +
              (more.empty() ? "" : ", " + more) + "}");
}

std::string value(const Read& read, const char* key) {
  const config::Node* node = read.model.find(key);
  return node ? config::to_text(*node) : "absent";
}

}  // namespace

TEST_CASE("huggingface: both spellings of a config.json are the same model", "[huggingface]") {
  for (const char* name : {"llama_tied_small"}) {
    CAPTURE(name);
    std::vector<std::string> problems;
    const config::Table five = config::model_of_config_json(kModels / name / "config.json", problems);
    const config::Table four = config::model_of_config_json(kModels / name / "config_v4.json", problems);
    CHECK(join(problems, "\n").empty());
    CHECK(five == four);
    CHECK(five.size() > 10);
  }
}

TEST_CASE("huggingface: null turns off what a file without the key would have", "[huggingface]") {
  const auto with = [](const std::string& family, const std::string& more) {
    return read(R"({"model_type": ")" + family +
                R"(", "hidden_size": 40, "num_hidden_layers": 4, "num_attention_heads": 4, "vocab_size": 99,
                    "intermediate_size": 48, "max_position_embeddings": 64, "num_key_value_heads": 2)" +
                more + "}");
  };
  CHECK(value(with("gemma2", ""), "attn_softcap") == "50");
  CHECK(value(with("gemma2", ""), "final_logit_softcap") == "30");
  const Read bare = with("gemma2", R"(, "attn_logit_softcapping": null, "final_logit_softcapping": null)");
  CHECK(bare.problems.empty());
  CHECK(value(bare, "attn_softcap") == "absent");
  CHECK(value(bare, "final_logit_softcap") == "absent");
  CHECK_THAT(with("gemma2", R"(, "sliding_window": null)").problems, Contains("sliding_window is missing"));
  CHECK_THAT(with("gemma2", R"(, "final_logit_softcapping": 0)").problems, Contains("it must be positive, or null for none"));
  CHECK_THAT(with("gemma3_text", R"(, "attn_logit_softcapping": 50.0)").problems, Contains("attn_logit_softcapping is not understood"));
  CHECK(value(with("nanochat", ""), "final_logit_softcap") == "15");
  CHECK(value(with("nanochat", R"(, "final_logit_softcapping": null)"), "final_logit_softcap") == "absent");
  CHECK(value(with("seed_oss", ""), "head_dim") == "128");
  CHECK(value(with("seed_oss", R"(, "head_dim": null)"), "head_dim") == "absent");
}

TEST_CASE("huggingface: a share of rotating components is an error where the class rotates whole heads", "[huggingface]") {
  CHECK_THAT(llama_with(R"("partial_rotary_factor": 0.5)").problems,
             Contains("partial_rotary_factor = 0.5 is not understood: the class rotates whole heads (model_type llama)"));
  CHECK_THAT(llama_with(R"("rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5})").problems,
             Contains("rotates whole heads"));
  CHECK(llama_with(R"("partial_rotary_factor": 1.0)").problems.empty());
}

TEST_CASE("huggingface: every key that is not understood is named", "[huggingface]") {
  CHECK(llama_with("").problems.empty());
  CHECK_THAT(llama_with(R"("sparse_attention": true)").problems, Contains("sparse_attention = true is not understood (model_type llama)"));
  CHECK_THAT(llama_with(R"("quantization_config": {"bits": 4})").problems, Contains("quantization_config"));
  CHECK_THAT(llama_with(R"("hidden_act": "xielu")").problems, Contains("hidden_act = 'xielu' is not an activation that is understood"));
  CHECK_THAT(llama_with(R"("hidden_act": null)").problems,
             Contains("hidden_act = null is not an activation; without the key it is 'silu'"));
  CHECK_THAT(llama_with(R"("head_dim": 0)").problems, Contains("head_dim = 0 is not understood; it must be positive"));
  CHECK_THAT(llama_with(R"("head_dim": -8)").problems, Contains("head_dim = -8 is not understood"));
  CHECK_THAT(llama_with(R"("is_encoder_decoder": true)").problems, Contains("is_encoder_decoder = true is not understood; only false is"));
  CHECK_THAT(llama_with(R"("mlp_bias": 1)").problems, Contains("mlp_bias = 1 is not true or false"));
  CHECK_THAT(llama_with(R"("num_key_value_heads": 4.0)").problems, Contains("num_key_value_heads = 4.0 is not an integer"));
  CHECK_THAT(llama_with(R"("rope_scaling": {"rope_type": "spiral", "factor": 2.0})").problems,
             Contains("rope_type = 'spiral' is not understood; default, linear, dynamic, llama3, yarn and longrope are"));
  CHECK_THAT(llama_with(R"("rope_scaling": {"rope_type": "longrope", "short_factor": [1.0]})").problems,
             Contains("long_factor is missing"));
  CHECK_THAT(llama_with(R"("rope_scaling": {"rope_type": "linear", "factor": 2.0, "secret": 1})").problems,
             Contains("rope_parameters.secret = 1 is not understood"));
  CHECK_THAT(llama_with(R"("rope_scaling": {"rope_type": "llama3", "factor": 2.0, "high_freq_factor": 4.0})").problems,
             Contains("rope_parameters.low_freq_factor is missing"));
  CHECK_THAT(llama_with(R"("rope_scaling": {"type": "yarn", "factor": 4.0, "attention_factor": -0.5})").problems,
             Contains("attention_factor = -0.5 is not understood; it must be positive"));
  CHECK_THAT(read(R"({"model_type": "lama"})").problems, Contains("the model_type 'lama' is not understood; did you mean 'llama'?"));
  CHECK_THAT(read(R"({"model_type": "llama", "hidden_size": 32})").problems, Contains("num_hidden_layers is missing"));
  CHECK_THROWS_WITH(read(R"({"hidden_size": 32})"), Contains("has no model_type"));
}

TEST_CASE("huggingface: rotary settings of either spelling become ours", "[huggingface]") {
  const Read old =
      llama_with(R"("rope_theta": 7000, "rope_scaling": {"type": "yarn", "factor": 8, "original_max_position_embeddings": 16})");
  CHECK(old.problems.empty());
  CHECK(value(old, "rope_theta") == "7000");
  CHECK(value(old, "rope_scaling") == "'yarn'");
  CHECK(value(old, "rope_orig_len") == "16");
  CHECK(value(old, "rope_mscale") == "absent");
  const Read fixed = llama_with(R"("rope_parameters": {"rope_type": "yarn", "factor": 8, "rope_theta": 100, "attention_factor": 1.0})");
  CHECK(value(fixed, "rope_gain") == "1");
  CHECK(value(fixed, "rope_orig_len") == "64");
  // transformers: a ratio of mscale and mscale_all_dim may lie below 1, and a factor of null is the ratio of lengths.
  const Read below = llama_with(R"("rope_scaling": {"type": "yarn", "factor": 8, "mscale": 0.5, "mscale_all_dim": 2})");
  CHECK(below.problems.empty());
  CHECK(std::stod(value(below, "rope_gain")) == Approx((0.05 * std::log(8.0) + 1) / (0.2 * std::log(8.0) + 1)));
  const Read ratio = llama_with(R"("rope_scaling": {"type": "yarn", "factor": null, "original_max_position_embeddings": 16})");
  CHECK(ratio.problems.empty());
  CHECK(value(ratio, "rope_factor") == "4");
}

TEST_CASE("huggingface: stretches that depend on the length of the sequence, older names and padding rows", "[huggingface]") {
  const Read longer = llama_with(
      R"("original_max_position_embeddings": 16, "rope_scaling": {"type": "su", "short_factor": [1, 1, 1.5, 2], "long_factor": [2, 3, 4, 5]})");
  CHECK(longer.problems.empty());
  CHECK(value(longer, "rope_scaling") == "'longrope'");
  CHECK(value(longer, "rope_orig_len") == "16");
  CHECK(value(longer, "rope_factor") == "4");
  CHECK(value(longer, "rope_short_factors") == "[1, 1, 1.5, 2]");
  const Read other = llama_with(
      R"("original_max_position_embeddings": 16, "rope_scaling": {"type": "longrope", "short_factor": [1], "long_factor": [2], "attention_factor": 3.0})");
  CHECK(value(other, "rope_gain") == "3");
  // The top level wins over the table, as in transformers.
  const Read twice = llama_with(
      R"("original_max_position_embeddings": 16, "rope_scaling": {"type": "yarn", "factor": 4, "original_max_position_embeddings": 32})");
  CHECK(value(twice, "rope_orig_len") == "16");
  const Read dynamic = llama_with(R"("rope_scaling": {"rope_type": "dynamic", "factor": 2.0})");
  CHECK(dynamic.problems.empty());
  CHECK(value(dynamic, "rope_orig_len") == "64");
  CHECK(value(dynamic, "max_seq_len") == "128");
  CHECK(value(llama_with(R"("pad_token_id": 3)"), "pad_id") == "3");
  CHECK(value(llama_with(R"("pad_token_id": -1)"), "pad_id") == "absent");
  CHECK(value(llama_with(R"("pad_token_id": 99)"), "pad_id") == "absent");  // a row that is not there
}

TEST_CASE("huggingface: what a family knows in one way only is refused in another", "[huggingface]") {
  const auto with = [](const std::string& type, const std::string& more) {
    return read(R"({"model_type": ")" + type + R"(", "hidden_size": 32, "num_hidden_layers": 4, "num_attention_heads": 4, "vocab_size": 99,
                    "intermediate_size": 48, "max_position_embeddings": 64)" +
                more + "}");
  };
  CHECK_THAT(with("hunyuan_v1_moe", R"(, "num_experts": 4, "moe_topk": [2, 2, 3, 2])").problems,
             Contains("moe_topk = [2, 2, 3, 2] is understood where all layers have the same"));
  CHECK(with("hunyuan_v1_moe", R"(, "num_experts": 4, "moe_topk": [2, 2, 2, 2])").problems.empty());
  CHECK_THAT(with("hunyuan_v1_moe", R"(, "num_experts": 4, "moe_topk": 1)").problems, Contains("one expert a token is not understood"));
  CHECK_THAT(with("mixtral", R"(, "num_local_experts": 4, "num_experts_per_tok": 1)").problems, Contains("one expert a token"));
  CHECK_THAT(with("hunyuan_v1_dense", R"(, "rope_scaling": {"type": "dynamic", "alpha": 2.0, "secret": 1})").problems,
             Contains("rope_scaling.secret = 1 is not understood"));
  CHECK_THAT(with("hunyuan_v1_dense", R"(, "use_cla": true)").problems, Contains("use_cla = true is not understood; only false is"));
  CHECK_THAT(with("mistral", R"(, "sliding_window": -3)").problems, Contains("sliding_window = -3 is not understood"));
  CHECK_THAT(with("ernie4_5_moe", R"(, "use_bias": true)").problems, Contains("use_bias = true is not understood"));
  CHECK_THAT(with("ernie4_5_moe", R"(, "moe_layer_interval": 0)").problems, Contains("moe_layer_interval = 0"));
  for (const char* type : {"mistral", "cwm", "gemma2", "gemma3_text", "olmo3", "qwen2", "qwen3_moe", "cohere2", "smollm3", "llama4_text",
                           "gpt_oss", "dots1"}) {
    CAPTURE(type);
    const TempDir temp;
    std::vector<std::string> problems;
    const std::string json = R"({"model_type": ")" + std::string(type) + R"(", "num_hidden_layers": 1000000000000, "hidden_size": 32})";
    CHECK_NOTHROW(config::model_of_config_json(temp.write("config.json", json), problems));  // the rules refuse the number
  }
  const auto neo = [](const std::string& types) {
    return read(R"({"model_type": "gpt_neo", "hidden_size": 32, "num_layers": 4, "num_heads": 4, "vocab_size": 99,
                    "max_position_embeddings": 64, "attention_types": )" +
                types + "}");
  };
  CHECK(value(neo(R"([[["global", "local"], 2]])"), "layer_pattern") == "['global', 'local']");
  CHECK_THAT(neo(R"([[["global", "local"], 3]])").problems, Contains("attention_types names 6 layers, num_layers is 4"));
  CHECK_THAT(neo(R"([[["global", "sparse"], 2]])").problems, Contains("attention_layers has 'sparse'"));
  CHECK_THAT(neo(R"([[[], 1000000000000]])").problems, Contains("attention_types has [[], 1000000000000], which is not understood"));
  CHECK_THAT(neo(R"([["global", 2]])").problems, Contains("attention_types has ['global', 2], which is not understood"));
  const auto mpt = [](const std::string& heads, const std::string& attention) {
    return read(R"({"model_type": "mpt", "d_model": 48, "n_layers": 2, "vocab_size": 99, "n_heads": )" + heads + R"(, "attn_config": {)" +
                attention + "}}");
  };
  CHECK(mpt("4", "").problems.empty());
  CHECK(mpt("6", "").problems.empty());
  CHECK_THAT(mpt("4", R"("alibi": false)").problems, Contains("attn_config.alibi = false is not understood; only true is"));
  CHECK_THAT(mpt("4", R"("clip_qkv": -1)").problems, Contains("attn_config.clip_qkv = -1 is not understood; it must be positive"));
  CHECK_THAT(mpt("4", R"("rope": true)").problems, Contains("attn_config.rope = true is not understood"));
  const auto dbrx = [](const std::string& experts) {
    return read(R"({"model_type": "dbrx", "d_model": 48, "n_heads": 4, "n_layers": 2, "vocab_size": 99, "ffn_config": {)" + experts + "}}");
  };
  CHECK(value(dbrx(R"("moe_top_k": 2, "moe_normalize_expert_weights": null)"), "moe_router") == "'softmax'");
  CHECK_THAT(dbrx(R"("moe_top_k": 2, "moe_normalize_expert_weights": 2.0)").problems,
             Contains("moe_normalize_expert_weights other than 1"));
  CHECK_THAT(dbrx(R"("moe_top_k": 2, "ffn_act_fn": {"name": "gelu"})").problems, Contains("ffn_config.ffn_act_fn.name = 'gelu'"));
}

TEST_CASE("huggingface: layer types become a pattern, a late window, or an error", "[huggingface]") {
  const auto qwen = [](const std::string& types, const std::string& window) {
    return read(R"({"model_type": "qwen3", "hidden_size": 32, "num_hidden_layers": 4, "num_attention_heads": 4, "vocab_size": 99,
                    "intermediate_size": 48, "max_position_embeddings": 64, "use_sliding_window": true, "sliding_window": )" +
                window + R"(, "layer_types": [)" + types + "]}");
  };
  const std::string full = R"("full_attention")";
  const std::string near = R"("sliding_attention")";
  const Read late = qwen(full + "," + near + "," + near + "," + near, "8");
  CHECK(late.problems.empty());
  CHECK(value(late, "layer_pattern") == "['local']");
  CHECK(value(late, "window_from_layer") == "1");
  CHECK(value(late, "window") == "8");
  const Read pairs = qwen(near + "," + full + "," + near + "," + full, "8");
  CHECK(value(pairs, "layer_pattern") == "['local', 'global']");
  CHECK(value(pairs, "window_from_layer") == "absent");
  CHECK(value(qwen(full + "," + full + "," + full + "," + full, "8"), "layer_pattern") == "absent");
  CHECK_THAT(qwen(near + "," + full + "," + near + "," + full, "null").problems, Contains("sliding_window is missing"));
  CHECK_THAT(qwen(near + "," + full, "8").problems, Contains("layer_types names 2 layers, num_hidden_layers is 4"));
  CHECK_THAT(qwen(R"("linear_attention", "x", "x", "x")", "8").problems, Contains("layer_types has 'linear_attention'"));
}

TEST_CASE("huggingface: what changes no number loads with one warning, what could stays an error", "[huggingface]") {
  const std::string notes =
      R"("is_llama_config": true, "rope_interleaved": false, "transformers.js_config": {"kv_cache_dtype": {"q4f16": "float16"}},
         "unsloth_version": "2024.9", "unsloth_fixed": true, "model_max_length": 128, "quantization_config": null, "sparse_attention": null,
         "ignore_keys_at_rope_validation": null, "axolotl_version": "0.4.1", "image_token_id": 7, "temperature": 0.7, "num_beams": 1,
         "attention_dropout": 0.0, "use_qk_norm": false, "rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "factor": null})";
  const TempDir temp;
  const auto text = [](const std::string& family, const std::string& more) {
    return R"({"model_type": ")" + family + R"(", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 99,
              "intermediate_size": 48, "max_position_embeddings": 64, "num_key_value_heads": 2, )" +
           more + "}";
  };
  for (const char* family : {"llama", "mistral", "qwen2", "qwen3", "gemma", "phi3", "olmo2", "smollm3", "granite", "nemotron"}) {
    CAPTURE(family);
    std::vector<std::string> problems, warnings;
    const fs::path file = temp.write("config.json", text(family, notes));
    const config::Table with = config::model_of_config_json(file, problems, &warnings);
    CAPTURE(problems);
    CHECK(problems.empty());
    REQUIRE(warnings.size() == 1);
    CHECK_THAT(warnings[0], Contains("config.json: passed over what changes no number of a " + std::string(family) + " model: "));
    for (const char* key : {"is_llama_config", "unsloth_version", "transformers.js_config", "quantization_config (null)", "axolotl_version",
                            "rope_parameters.factor (null)"}) {
      CHECK_THAT(warnings[0], Contains(key));
    }
    warnings.clear();
    const fs::path bare = temp.write("bare.json", text(family, R"("rope_parameters": {"rope_type": "default", "rope_theta": 1e4})"));
    CHECK(config::model_of_config_json(bare, problems, &warnings) == with);
    CHECK(warnings.empty());
    for (const char* fault : {R"("quantization_config": {"bits": 4})", R"("quantization_config": {})", R"("rope_interleaved": true)",
                              R"("attention_version": "v2")", R"("sparse_attention": false)", R"("alibi": true)", R"("_secret": 1)"}) {
      CAPTURE(fault);
      problems.clear();
      config::model_of_config_json(temp.write("config.json", text(family, fault)), problems, &warnings);
      CHECK(problems.size() == 1);
    }
    problems.clear();
    warnings.clear();
  }
}

TEST_CASE("huggingface: lists that follow no period are taken as they stand", "[huggingface]") {
  const auto with = [](const std::string& type, const std::string& more) {
    return read(R"({"model_type": ")" + type + R"(", "hidden_size": 32, "num_hidden_layers": 4, "num_attention_heads": 4, "vocab_size": 99,
                    "intermediate_size": 48, "max_position_embeddings": 64, "num_key_value_heads": 2)" +
                more + "}");
  };
  const Read smol = with("smollm3", R"(, "no_rope_layers": [1, 0, 0, 1])");
  CHECK_THAT(smol.problems, Catch::Equals(""));
  CHECK(value(smol, "rope_pattern") == "['rope', 'nope', 'nope']");
  CHECK(value(with("smollm3", R"(, "no_rope_layers": [1, 0, 1, 0])"), "nope_every") == "2");
  CHECK(value(with("smollm3", R"(, "no_rope_layers": [0, 0, 0, 0])"), "pos_embedding") == "'none'");
  CHECK_THAT(with("smollm3", R"(, "no_rope_layers": [1, 0])").problems, Contains("no_rope_layers names 2 layers, num_hidden_layers is 4"));
  CHECK_THAT(with("smollm3", R"(, "no_rope_layers": [1, 0, 2, 1])").problems, Contains("no_rope_layers has 2, which is not understood"));
  const std::string experts = R"(, "num_experts": 4, "num_experts_per_tok": 2, "mlp_only_layers": )";
  CHECK(value(with("qwen3_moe", experts + "[1]"), "moe_pattern") == "['experts', 'dense', 'experts']");
  CHECK(value(with("qwen3_moe", experts + "[0, 1]"), "moe_first_dense") == "2");
  CHECK(value(with("qwen3_moe", experts + "[0, 2]"), "moe_frequency") == "2");
  CHECK_THAT(with("qwen3_moe", experts + R"(["x"])").problems, Contains("mlp_only_layers has 'x', which is not understood"));
  CHECK_THAT(with("qwen3_moe", experts + "[0, 1, 2, 3]").problems, Contains("no layer has experts"));
  const Read exaone = with("exaone_moe", R"(, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24, "sliding_window": 8,
      "first_k_dense_replace": 1, "mlp_layer_types": ["sparse", "dense", "dense", "sparse"])");
  CHECK_THAT(exaone.problems, Catch::Equals(""));
  CHECK(value(exaone, "moe_pattern") == "['experts', 'dense', 'dense']");
  CHECK(value(exaone, "moe_first_dense") == "absent");
  const Read cohere = with("cohere2", R"(, "sliding_window": 8, "layer_types": ["full_attention", "sliding_attention", "full_attention",
                                         "full_attention"])");
  CHECK_THAT(cohere.problems, Catch::Equals(""));
  CHECK(value(cohere, "layer_pattern") == "['global', 'local', 'global']");
  CHECK(value(cohere, "rope_pattern") == "['nope', 'rope', 'nope']");
}

TEST_CASE("huggingface: a folder in init_from or preset sets the model, and the job's own keys win aloud", "[huggingface]") {
  const std::string folder = (kModels / "llama_tied_small").string();
  const std::string text = GENERATE(as<std::string>{}, "[checkpoint]\ninit_from = \"{}\"\n", "[model]\npreset = \"{}\"\n");
  std::string toml = text;
  toml.replace(toml.find("{}"), 2, folder);
  const config::Loaded loaded = load_job({toml, {"--model.max_seq_len=4096", "--train.seq_len=32"}});
  const config::Config config = good(loaded);
  CHECK(config.model.dim == 32);
  CHECK(config.model.tie_embeddings);
  CHECK(config.model.max_seq_len == 4096);
  REQUIRE(loaded.report.warnings.size() == 1);
  CHECK_THAT(loaded.report.warnings[0], Contains("model.max_seq_len = 4096 (--model.max_seq_len) instead of 64"));
}

TEST_CASE("huggingface: a folder that is not understood is a problem of the job", "[huggingface]") {
  const TempDir temp;
  const fs::path file = temp.write("config.json", R"({"model_type": "mamba"})");
  const config::Loaded loaded = load_job({"[checkpoint]\ninit_from = \"" + file.parent_path().string() + "\"\n"});
  CHECK_THAT(messages(loaded), Contains("the model_type 'mamba' is not understood"));
}

TEST_CASE("huggingface: of a model that also sees, the text part is read", "[huggingface]") {
  const auto seeing = [](const std::string& text, const std::string& more = "") {
    return read(R"({"model_type": "gemma3", "vision_config": {"hidden_size": 8}, "mm_tokens_per_image": 4)" + more +
                R"(, "text_config": )" + text + "}");
  };
  const Read small = seeing(R"({"model_type": "gemma3_text", "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 6})");
  CHECK_THAT(small.problems, Catch::Equals(""));
  CHECK(value(small, "dim") == "64");
  CHECK(value(small, "n_heads") == "8");  // the class's default, which published files leave out
  CHECK(value(small, "vocab_size") == "262208");
  CHECK(value(seeing(R"({"model_type": "gemma3_text", "tie_word_embeddings": true})", R"(, "tie_word_embeddings": false)"),
              "tie_embeddings") == "false");
  CHECK_THAT(seeing(R"({"model_type": "gemma3_text", "hidden_act": 3, "sparse": 1})").problems, Contains("sparse = 1 is not understood"));
  CHECK_THAT(seeing(R"({"model_type": "gemma3_text"})", R"(, "speech_config": {})").problems, Contains("speech_config"));
  CHECK_THAT(seeing(R"({"model_type": "qwen2"})").problems,
             Contains("text_config.model_type = 'qwen2' is not understood in a gemma3 model; have: gemma3_text"));
  CHECK_THROWS_WITH(read(R"({"model_type": "llama4"})"), Contains("has no text_config, where a llama4 model has its text model"));
}

}  // namespace kf::test
