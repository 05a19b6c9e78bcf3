// One storage, two forms: experts in one tensor or in one tensor each.

#include <ATen/ATen.h>

#include "checkpoint/files/weights.h"
#include "core/error.h"
#include "moe_model.h"
#include "support/temp_dir.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

using namespace kf;
using namespace kf::test;
using Catch::Matchers::Contains;

namespace {

config::Config form(bool packed) {
  config::Config config = moe_config();
  config.model.mlp_bias = true;
  config.model.moe_router = "sigmoid_topk";
  config.model.moe_packed_experts = packed;
  return config;
}

fs::path stored(const TempDir& dir, Model& model, std::vector<std::pair<std::string, at::Tensor>> more = {},
                const std::string& without = "") {
  auto weights = weights_of(model);
  std::erase_if(weights, [&](const auto& entry) { return !without.empty() && entry.first.find(without) != std::string::npos; });
  weights.insert(weights.end(), more.begin(), more.end());
  fs::path path = dir / "model.safetensors";
  write_safetensors(path, weights);
  return path;
}

void load(const fs::path& path, Model& model) { load_weights_from(StoredTensors(path), model); }

}  // namespace

TEST_CASE("moe storage: both forms start from the same weights and give the same logits", "[moe]") {
  const at::Tensor tokens = random_tokens(2, 16, 5);
  const auto list = tiny_model(form(false)), packed = tiny_model(form(true));
  CHECK(logits_of(*list, tokens).equal(logits_of(*packed, tokens)));
}

TEST_CASE("moe storage: names and shapes are those of the chosen form", "[moe]") {
  const auto shapes = [](bool packed) {
    std::map<std::string, std::vector<std::int64_t>> out;
    for (const auto& [name, tensor] : weights_of(*tiny_model(form(packed)))) {
      out[name] = tensor.sizes().vec();
    }
    return out;
  };
  const auto list = shapes(false), packed = shapes(true);
  CHECK(list.at("layers.1.mlp.experts.3.down_proj.weight") == std::vector<std::int64_t>{32, 16});
  CHECK(list.at("layers.1.mlp.experts.3.up_proj.bias") == std::vector<std::int64_t>{16});
  CHECK(packed.at("layers.1.mlp.down_w") == std::vector<std::int64_t>{4, 16, 32});
  CHECK(packed.at("layers.1.mlp.gate_w") == std::vector<std::int64_t>{4, 32, 16});
  CHECK(packed.count("layers.1.mlp.experts.3.down_proj.weight") == 0);
  CHECK(packed.at("layers.1.mlp.router.expert_bias") == std::vector<std::int64_t>{4});
}

TEST_CASE("moe storage: a file in either form loads into either", "[moe]") {
  const bool from = GENERATE(true, false), into = GENERATE(true, false);
  CAPTURE(from, into);
  const TempDir dir;
  const auto source = tiny_model(form(from), 1), target = tiny_model(form(into), 2);
  load(stored(dir, *source), *target);
  const ParameterList a = source->parameters(), b = target->parameters();
  for (std::size_t i = 0; i < a.size(); ++i) {
    CHECK(a[i]->master.equal(b[i]->master));
  }
}

TEST_CASE("moe storage: a missing expert is named, a running mean may be missing", "[moe]") {
  const TempDir dir;
  const auto model = tiny_model(form(false));
  CHECK_THROWS_WITH(load(stored(dir, *model, {}, "experts.2.up_proj.weight"), *model),
                    Contains("missing in the file (2)") && Contains("layers.0.mlp.experts.2.up_proj.weight"));
  CHECK_NOTHROW(load(stored(dir, *model, {}, "expert_ema"), *model));
  CHECK_THROWS_WITH(load(stored(dir, *model, {}, "expert_bias"), *model), Contains("layers.0.mlp.router.expert_bias"));
}

TEST_CASE("moe storage: both forms in one file must agree", "[moe]") {
  const TempDir dir;
  const auto model = tiny_model(form(false)), packed = tiny_model(form(true));
  std::vector<std::pair<std::string, at::Tensor>> both;
  for (const auto& [name, tensor] : weights_of(*packed)) {
    if (name.ends_with("_w")) {
      both.emplace_back(name, tensor.detach().clone());
    }
  }
  CHECK_NOTHROW(load(stored(dir, *model, both), *model));
  both.front().second.select(0, 1).add_(1);
  CHECK_THROWS_WITH(load(stored(dir, *model, both), *model), Contains("are one weight in the model, but differ in the file"));
}

TEST_CASE("moe storage: training goes the same way in both forms", "[moe]") {
  const std::string optimizer = GENERATE("adamw", "muon");
  const auto trained = [&](bool packed) {
    config::Config config = form(packed);
    config.optimizer.name = optimizer;
    Bench bench(config);
    FixedLoader data(random_tokens(4, 32, 3), random_tokens(4, 32, 4), 2);
    for (std::int64_t s = 0; s < 3; ++s) {
      bench.step(data, s, 1e-2);
    }
    return bench.masters();
  };
  CHECK(bitwise_equal(trained(false), trained(true)));
}
