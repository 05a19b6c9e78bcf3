// What tensor and expert parallelism make of a weight.

#include <ATen/ATen.h>

#include <map>

#include "core/error.h"
#include "layout/split.h"
#include "model/transformer/build.h"
#include "support/tiny.h"

#include <catch2/catch.hpp>

namespace kf::test {
namespace {

using Catch::Contains;

std::shared_ptr<Model> model_of(const std::string& kind) {
  config::Config config = tiny_config();
  config.model.n_kv_heads = 4;
  config.model.vocab_size = 96;
  config.model.attn_bias = "all";
  config.model.tie_embeddings = kind == "tied";
  if (kind == "experts") {
    config.model.num_experts = 4;
    config.model.moe_top_k = 2;
    config.model.moe_ffn_dim = 16;
    config.model.moe_shared_experts = 1;
  }
  if (kind == "latent") {
    config.model.attention = "mla";
    config.model.mla_q_rank = 16;
    config.model.mla_kv_rank = 8;
  }
  if (kind == "lora") {
    config.adapter.name = "lora";
    config.adapter.rank = 2;
    config.adapter.targets = {"q_proj", "o_proj"};
  }
  auto model = build_model(config, native_registries());
  model->parameters();
  return model;
}

Mesh mesh_of(std::int64_t tp, std::int64_t ep) {
  PerAxis degrees{1, 1, 1, 1, ep, tp};
  return Mesh(degrees);
}

}  // namespace

TEST_CASE("split: the parts of every weight are the whole weight, each number as often as ranks share it", "[split]") {
  const std::string kind = GENERATE("dense", "tied", "experts", "latent", "lora");
  const auto [tp, ep] = GENERATE(std::pair{2, 1}, std::pair{4, 1}, std::pair{1, 2}, std::pair{2, 4});
  CAPTURE(kind, tp, ep);
  const Mesh mesh = mesh_of(tp, ep);
  for (const ParameterPtr& weight : model_of(kind)->parameters()) {
    CAPTURE(weight->name);
    const at::Tensor count = at::zeros(weight->shape, at::kLong);
    std::int64_t parts = 1;
    for (std::int64_t rank = 0; rank < mesh.size(); ++rank) {
      const Placement placement{split_cuts(*weight, mesh, rank)};
      placement.of(weight->shape).of(count).add_(1);
      parts = 1;
      for (const Cut& cut : placement.cuts) {
        parts *= static_cast<std::int64_t>(cut.sizes.size());
      }
    }
    CHECK(count.eq(mesh.size() / parts).all().item<bool>());
  }
}

TEST_CASE("split: layers say which dim is divided, over whom, and what stays whole", "[split]") {
  const auto dims = [](const std::string& kind, const Mesh& mesh) {
    std::map<std::string, std::pair<Axis, std::int64_t>> out;
    for (const ParameterPtr& weight : model_of(kind)->parameters()) {
      for (const Cut& cut : split_cuts(*weight, mesh, 0)) {
        out[weight->name] = {cut.axis, cut.dim};
      }
    }
    return out;
  };
  const std::pair rows{Axis::tp, std::int64_t{0}}, columns{Axis::tp, std::int64_t{1}}, experts{Axis::ep, std::int64_t{0}};
  auto dense = dims("dense", mesh_of(2, 1));
  CHECK((dense.at("layers.0.attention.q_proj.weight") == rows));
  CHECK((dense.at("layers.0.attention.k_proj.bias") == rows));
  CHECK((dense.at("layers.0.attention.o_proj.weight") == columns));
  CHECK(dense.count("layers.0.attention.o_proj.bias") == 0);  // is added once, after the sum
  CHECK((dense.at("layers.1.mlp.gate_proj.weight") == rows));
  CHECK((dense.at("layers.1.mlp.down_proj.weight") == columns));
  CHECK((dense.at("token_embedding.embedding.weight") == rows));
  CHECK((dense.at("output_head.proj.weight") == rows));
  CHECK(dense.count("layers.0.attention_norm.weight") == 0);
  auto moe = dims("experts", mesh_of(2, 2));
  CHECK((moe.at("layers.0.mlp.gate_w") == experts));
  CHECK((moe.at("layers.0.mlp.down_w") == experts));
  CHECK(moe.count("layers.0.mlp.router.gate.weight") == 0);
  CHECK((moe.at("layers.0.mlp.shared_expert.down_proj.weight") == columns));
  auto latent = dims("latent", mesh_of(2, 1));
  CHECK(latent.count("layers.0.attention.q_a_proj.weight") == 0);
  CHECK((latent.at("layers.0.attention.q_b_proj.weight") == rows));
  CHECK(latent.count("layers.0.attention.kv_a_proj.weight") == 0);
  CHECK((latent.at("layers.0.attention.kv_b_proj.weight") == rows));
  auto lora = dims("lora", mesh_of(2, 1));
  CHECK((lora.at("layers.0.attention.q_proj.lora.b") == rows));
  CHECK(lora.count("layers.0.attention.q_proj.lora.a") == 0);
  CHECK((lora.at("layers.0.attention.o_proj.lora.a") == columns));
  CHECK(lora.count("layers.0.attention.o_proj.lora.b") == 0);
}

TEST_CASE("split: heads and experts that do not divide are refused by name", "[split]") {
  const auto split = [](const std::string& kind, const Mesh& mesh) {
    for (const ParameterPtr& weight : model_of(kind)->parameters()) {
      if (weight->name.starts_with("layers.")) {
        split_cuts(*weight, mesh, 0);
      }
    }
  };
  // 4 heads of 8 numbers: 32 rows divide by 8, heads do not.
  CHECK_THROWS_WITH(split("dense", mesh_of(8, 1)),
                    Contains("layers.0.attention.q_proj.weight has 4 heads along dim 0, which distributed.tp = 8 does not divide"));
  CHECK_THROWS_WITH(split("experts", mesh_of(1, 3)), Contains("has 4 experts along dim 0, which distributed.ep = 3 does not divide"));
}

}  // namespace kf::test
