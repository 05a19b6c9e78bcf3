#include "checkpoint/peft.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>

#include <fstream>

#include "checkpoint/files/safetensors.h"
#include "config/tree/json.h"
#include "core/error.h"
#include "core/plain_file.h"
#include "support/temp_dir.h"
#include "support/tiny.h"

#include <catch2/catch.hpp>  // after LibTorch, whose CHECK it replaces

using namespace kf;
using Catch::Matchers::Contains;

namespace {

config::Config lora_config(std::vector<std::string> targets = {"q_proj", "v_proj"}) {
  config::Config c = test::tiny_config();
  c.adapter = {"lora", std::move(targets), 4, 8, 0.1, ""};
  return c;
}

std::shared_ptr<Model> moved_model(const config::Config& config, std::uint64_t seed) {
  auto model = test::tiny_model(config);
  const at::NoGradGuard no_grad;
  at::Generator draws = at::detail::createCPUGenerator(seed);
  for (const auto& [name, tensor] : adapter_tensors(*model)) {
    tensor.normal_(0, 0.1, draws);
  }
  return model;
}

bool same_adapters(Model& a, Model& b) {
  const AdapterTensors left = adapter_tensors(a), right = adapter_tensors(b);
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [](const auto& x, const auto& y) { return x.first == y.first && at::equal(x.second, y.second); });
}

std::string error_of_reading(const config::AdapterConfig& adapter, Model& model) {
  try {
    read_peft(adapter, "", model);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// As PEFT 0.17 writes it for a Llama with q_proj and v_proj, but for keys that say nothing.
constexpr const char* kTheirConfig = R"({
  "alpha_pattern": {}, "auto_mapping": null, "base_model_name_or_path": "org/base", "bias": "none", "corda_config": null,
  "eva_config": null, "exclude_modules": null, "fan_in_fan_out": false, "inference_mode": true, "init_lora_weights": true,
  "layer_replication": null, "layers_pattern": null, "layers_to_transform": null, "loftq_config": {}, "lora_alpha": 8,
  "lora_bias": false, "lora_dropout": 0.1, "megatron_config": null, "megatron_core": "megatron.core", "modules_to_save": null,
  "peft_type": "LORA", "qalora_group_size": 16, "r": 4, "rank_pattern": {}, "revision": null, "target_modules": ["v_proj", "q_proj"],
  "target_parameters": null, "task_type": "CAUSAL_LM", "trainable_token_indices": null, "use_dora": false, "use_qalora": false,
  "use_rslora": false
})";

}  // namespace

TEST_CASE("peft: what is written has PEFT's keys and names, and is read again to the bit", "[peft]") {
  const test::TempDir dir;
  config::Config config = lora_config();
  const auto model = moved_model(config, 1);
  write_peft(dir / "out", *model, config.adapter, "");
  const config::Node json = config::parse_json(read_file(dir / "out/adapter_config.json"), "out");
  CHECK(config::to_json(*json.table()->find("peft_type")) == "\"LORA\"");
  CHECK(config::to_json(*json.table()->find("r")) == "4");
  CHECK(config::to_json(*json.table()->find("lora_alpha")) == "8");
  CHECK(config::to_json(*json.table()->find("target_modules")) == R"(["q_proj", "v_proj"])");
  const SafetensorsFile file(dir / "out/adapter_model.safetensors");
  CHECK(file.names().size() == 8);
  CHECK(file.shape("base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight") == std::vector<std::int64_t>{4, 32});
  CHECK(file.shape("base_model.model.model.layers.1.self_attn.v_proj.lora_B.weight") == std::vector<std::int64_t>{16, 4});

  const auto other = moved_model(config, 2);
  CHECK_FALSE(same_adapters(*model, *other));
  config.adapter.path = (dir / "out").string();
  read_peft(config.adapter, "", *other);
  CHECK(same_adapters(*model, *other));
}

TEST_CASE("peft: adapters of some layers alone are named in full", "[peft]") {
  const test::TempDir dir;
  const config::Config config = lora_config({"layers.1.attention.q_proj"});
  write_peft(dir / "out", *moved_model(config, 1), config.adapter, "");
  const config::Node json = config::parse_json(read_file(dir / "out/adapter_config.json"), "out");
  CHECK(config::to_json(*json.table()->find("target_modules")) == R"(["model.layers.1.self_attn.q_proj"])");
}

TEST_CASE("peft: a folder that PEFT wrote is read, and what does not agree is refused", "[peft]") {
  const test::TempDir dir;
  config::Config config = lora_config();
  const auto model = moved_model(config, 1);
  std::vector<std::pair<std::string, at::Tensor>> theirs;
  for (const char* layer : {"0", "1"}) {
    for (const auto& [name, out] : {std::pair("q_proj", 32), std::pair("v_proj", 16)}) {
      const std::string start = std::string("base_model.model.model.layers.") + layer + ".self_attn." + name;
      theirs.emplace_back(start + ".lora_A.weight", at::full({4, 32}, 0.5));
      theirs.emplace_back(start + ".lora_B.weight", at::full({out, 4}, 0.25));
    }
  }
  const auto write = [&](const std::string& text) {
    std::ofstream(dir / "adapter_config.json") << text;
    write_safetensors(dir / "adapter_model.safetensors", theirs);
  };
  write(kTheirConfig);
  config.adapter.path = dir.path().string();
  CHECK(error_of_reading(config.adapter, *model).empty());
  for (const auto& [name, tensor] : adapter_tensors(*model)) {
    CAPTURE(name);
    CHECK(tensor.eq(name.ends_with(".a") ? 0.5 : 0.25).all().item<bool>());
  }

  config::AdapterConfig changed = config.adapter;
  changed.alpha = 16;
  CHECK_THAT(error_of_reading(changed, *model), Contains("lora_alpha is 8") && Contains("set adapter.alpha = 8"));
  const auto with = [](const std::string& key, const std::string& was, const std::string& now) {
    std::string text = kTheirConfig;
    return text.replace(text.find("\"" + key + "\": " + was), key.size() + 4 + was.size(), "\"" + key + "\": " + now);
  };
  write(with("use_dora", "false", "true"));
  CHECK_THAT(error_of_reading(config.adapter, *model), Contains("use_dora is true"));
  write(with("layer_replication", "null", "[[0, 2], [1, 2]]"));
  CHECK_THAT(error_of_reading(config.adapter, *model), Contains("layer_replication is"));
  write(with("init_lora_weights", "true", "\"pissa_niter_4\""));
  CHECK_THAT(error_of_reading(config.adapter, *model), Contains("init_lora_weights is 'pissa_niter_4', which changes the weights"));
  write(with("init_lora_weights", "true", "\"gaussian\""));
  CHECK(error_of_reading(config.adapter, *model).empty());
  write(kTheirConfig);
  const auto narrow = moved_model(lora_config({"q_proj"}), 1);
  CHECK_THAT(error_of_reading(config.adapter, *narrow), Contains("v_proj.lora_A.weight"));
  const auto wide = moved_model(lora_config({"q_proj", "k_proj", "v_proj"}), 1);
  CHECK_THAT(error_of_reading(config.adapter, *wide), Contains("missing in the file (4): layers.0.attention.k_proj.lora.a"));
  CHECK_THAT(error_of_reading({"lora", {}, 4, 8, 0, "nowhere"}, *model), Contains("nowhere"));
}
