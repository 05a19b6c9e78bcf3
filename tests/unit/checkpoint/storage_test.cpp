// Storage that a file is to fill, and weights that keep no master because they never train.

#include <ATen/ATen.h>

#include <map>

#include "checkpoint/files/weights.h"
#include "checkpoint/left_out.h"
#include "core/error.h"
#include "support/temp_dir.h"
#include "support/tiny.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

using namespace kf;
using namespace kf::test;
using Catch::Matchers::Contains;

namespace {

/// Frozen but for the head.
config::Config frozen_config() {
  config::Config config = tiny_config();
  config.model.tie_embeddings = false;
  config.train.trainable = {"output_head.*"};
  return config;
}

fs::path file_of(const fs::path& path, Model& model) {
  write_safetensors(path, weights_of(model));
  return path;
}

void load(const fs::path& path, Model& model, const VocabRows& rows = {}) { load_weights_from(StoredTensors(path), model, rows); }

std::map<std::string, at::Tensor> kept(Model& model) {
  std::map<std::string, at::Tensor> out;
  for (const ParameterPtr& parameter : model.parameters()) {
    out[parameter->name] = parameter->kept().detach();
  }
  return out;
}

/// A model whose weights a file is to fill.
std::shared_ptr<Model> waiting_model(const config::Config& config, const VocabRows& rows = {}, at::ScalarType compute = at::kFloat) {
  std::shared_ptr<Model> model = tiny_model(config, 2, compute);
  materialize(*model, at::kCPU, compute, 2, at::kFloat, [rows](const Parameter& p) { return needs_first_values(p, rows); });
  return model;
}

std::vector<std::string> drawn(Model& model) {
  std::vector<std::string> out;
  for (const ParameterPtr& parameter : model.parameters()) {
    if (!parameter->unfilled) {
      out.push_back(parameter->name);
    }
  }
  return out;
}

}  // namespace

TEST_CASE("storage: what a file is to fill is not drawn, is named until it is filled, and then holds what the file holds", "[storage]") {
  const TempDir dir;
  const at::ScalarType compute = GENERATE(at::kFloat, at::kBFloat16);
  const config::Config config = frozen_config();
  const auto source = tiny_model(config, 1, compute), model = waiting_model(config, {}, compute);
  CHECK(drawn(*model).empty());
  CHECK_THROWS_WITH(require_values(model->parameters()), Contains("token_embedding.embedding.weight") && Contains("norm.weight"));
  load(file_of(dir / "w.safetensors", *source), *model);
  CHECK_NOTHROW(require_values(model->parameters()));
  for (const auto& [name, tensor] : kept(*source)) {
    CAPTURE(name);
    CHECK(kept(*model).at(name).equal(tensor));
  }
  CHECK_NOTHROW(require_values(source->parameters()));
}

TEST_CASE("storage: what a file may lack, or takes from the first values, is drawn all the same", "[storage]") {
  config::Config config = tiny_config();
  config.model.tie_embeddings = false;
  config.model.head_bias = true;
  const std::string embedding = "token_embedding.embedding.weight", head = "output_head.proj.weight", bias = "output_head.proj.bias";
  using Names = std::vector<std::string>;
  CHECK(drawn(*waiting_model(config, {VocabRows::Fill::mean, kTinyVocab})).empty());
  CHECK(drawn(*waiting_model(config, {VocabRows::Fill::init, kTinyVocab})) == Names{embedding, head, bias});
  CHECK(drawn(*waiting_model(config, {VocabRows::Fill::none, kTinyVocab, HeadSource::fresh})) == Names{head, bias});
  CHECK(drawn(*waiting_model(config, {VocabRows::Fill::none, kTinyVocab, HeadSource::embedding})) == Names{bias});
  config::Config experts = tiny_config();
  experts.model.num_experts = 4;
  experts.model.moe_top_k = 2;
  experts.model.moe_router = "sigmoid_topk";
  const auto model = waiting_model(experts);
  CHECK(drawn(*model) == Names{"layers.0.mlp.router.expert_ema", "layers.1.mlp.router.expert_ema"});
  for (const ParameterPtr& parameter : model->parameters()) {
    CHECK(parameter->unfilled == parameter->counted);
  }
}

TEST_CASE("storage: further rows and a fresh head are as a new model has them", "[storage]") {
  const TempDir dir;
  config::Config config = tiny_config();
  config.model.tie_embeddings = false;
  config::Config fewer = config;
  fewer.model.vocab_size = kTinyVocab - 3;
  const VocabRows rows{VocabRows::Fill::init, kTinyVocab, HeadSource::fresh};
  const auto fresh = tiny_model(config, 2), model = waiting_model(config, rows);
  load(file_of(dir / "w.safetensors", *tiny_model(fewer, 1)), *model, rows);
  CHECK_NOTHROW(require_values(model->parameters()));
  const auto of = [](Model& of_model, const char* name) { return kept(of_model).at(name); };
  CHECK(of(*model, "output_head.proj.weight").equal(of(*fresh, "output_head.proj.weight")));
  const auto last = [&](Model& of_model) { return of(of_model, "token_embedding.embedding.weight").narrow(0, kTinyVocab - 3, 3); };
  CHECK(last(*model).equal(last(*fresh)));
}

TEST_CASE("storage: a frozen 16-bit weight keeps no master, and files hold what it is", "[storage]") {
  const TempDir dir;
  const config::Config config = frozen_config();
  const auto low = tiny_model(config, 1, at::kBFloat16), wide = tiny_model(config, 1);
  for (const ParameterPtr& parameter : low->parameters()) {
    CAPTURE(parameter->name);
    CHECK(parameter->master.defined() == (parameter->trainable || parameter->shape.size() < 2));
    CHECK(parameter->kept().scalar_type() == (parameter->master.defined() ? at::kFloat : at::kBFloat16));
    CHECK_NOTHROW(parameter->publish());
  }
  for (const auto& [name, tensor] : kept(*wide)) {
    CAPTURE(name);
    const at::Tensor mine = kept(*low).at(name);
    CHECK(mine.equal(tensor.to(mine.scalar_type())));  // the same draws, rounded once more
  }
  const auto into_wide = tiny_model(config, 2), into_low = tiny_model(config, 2, at::kBFloat16);
  const fs::path file = file_of(dir / "w.safetensors", *low);
  load(file, *into_wide);
  load(file, *into_low);
  for (const auto& [name, tensor] : kept(*low)) {
    CAPTURE(name);
    CHECK(kept(*into_wide).at(name).equal(tensor.to(at::kFloat)));
    CHECK(kept(*into_low).at(name).equal(tensor));
  }
  load(file_of(dir / "wide.safetensors", *wide), *into_low);
  for (const auto& [name, tensor] : kept(*low)) {
    CHECK(kept(*into_low).at(name).equal(tensor));
  }
}

TEST_CASE("storage: frozen weights that a 16-bit run left out are known again in fp32, and others are not", "[storage]") {
  const config::Config config = frozen_config();
  const auto low = tiny_model(config, 1, at::kBFloat16), wide = tiny_model(config, 1), other = tiny_model(config, 2);
  const fs::path place = "step_1/state.json";
  const LeftOut left_out = left_out_from(to_node(frozen_weights(*low, "runs/base")), place);
  CHECK(left_out.contains("token_embedding.embedding.weight"));
  CHECK_FALSE(left_out.contains("output_head.proj.weight"));
  const std::string matrix = "token_embedding.embedding.weight", vector = "norm.weight";
  CHECK(left_out.as_it_was(matrix, kept(*wide).at(matrix)).equal(kept(*low).at(matrix)));
  CHECK(left_out.as_it_was(vector, kept(*wide).at(vector)).scalar_type() == at::kFloat);
  CHECK_NOTHROW(check_left_out(left_out, *low, place));
  CHECK_NOTHROW(check_left_out(left_out, *wide, place));
  CHECK_THROWS_WITH(check_left_out(left_out, *other, place), Contains("are not the ones that it was trained beside"));
  CHECK_THROWS_WITH(check_left_out(left_out, *tiny_model(config, 2, at::kBFloat16), place),
                    Contains("are not the ones that it was trained beside"));
  // fp32 bytes cannot be compared with rounded ones: nothing is refused for it.
  CHECK_NOTHROW(check_left_out(frozen_weights(*wide, "runs/base"), *low, place));
  config::Node damaged = to_node(left_out);
  config::Table table = *damaged.table();
  table["types"] = config::Node(config::Array(left_out.names.size(), config::Node("int8")));
  CHECK_THROWS_WITH(left_out_from(config::Node(table), place), Contains("a type in 'left_out'"));
}
