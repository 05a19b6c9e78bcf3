#include <ATen/ATen.h>

#include <algorithm>

#include "builtins/builtins.h"
#include "config/load/load.h"
#include "config/load/model_presets.h"
#include "config/plan/derived.h"
#include "core/error.h"
#include "model/transformer/build.h"
#include "optim/muon.h"
#include "optim/optimizer.h"
#include "support/tiny.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

using namespace kf;
using namespace kf::test;

namespace {

ParameterPtr find(const ParameterList& list, const std::string& name) {
  const auto found = std::find_if(list.begin(), list.end(), [&](const ParameterPtr& p) { return p->name == name; });
  return found == list.end() ? nullptr : *found;
}

}  // namespace

TEST_CASE("model: names are the state-dict names, and the count is the formula's", "[model]") {
  config::Config config = tiny_config();
  config.model.qk_norm = GENERATE(false, true);
  config.model.tie_embeddings = GENERATE(false, true);
  config.model.norm_type = GENERATE(as<std::string>{}, "rmsnorm", "layernorm");
  config.model.activation = GENERATE(as<std::string>{}, "silu", "gelu", "relu");
  const auto model = tiny_model(config);
  const ParameterList parameters = model->parameters();
  CHECK(count_parameters(parameters) == config::parameter_count(config.model));
  CHECK(parameters.front()->name == "token_embedding.embedding.weight");
  CHECK(find(parameters, "layers.1.attention.q_proj.weight") != nullptr);
  CHECK((find(parameters, "layers.0.attention.k_norm.weight") != nullptr) == config.model.qk_norm);
  CHECK((find(parameters, "layers.0.mlp.gate_proj.weight") != nullptr) == (config.model.activation == "silu"));
  CHECK((find(parameters, "norm.bias") != nullptr) == (config.model.norm_type == "layernorm"));
  CHECK((find(parameters, "output_head.proj.weight") != nullptr) != config.model.tie_embeddings);
}

TEST_CASE("model: every known model is built at every scale, with the parameters that its settings count", "[model][presets]") {
  const Registries registries = native_registries();
  const config::Catalog catalog = registries.catalog();
  for (const std::string& preset : config::model_preset_names()) {
    for (const char* scale : {"1", "2", "4", "8", "64"}) {
      CAPTURE(preset, scale);
      config::Request request;
      request.overrides = {"--model.preset=" + preset, std::string("--model.scale=") + scale, "--train.seq_len=128"};
      const config::Loaded loaded = config::load(request, catalog);
      INFO(config::to_text(loaded.report));
      REQUIRE(loaded.report.problems.empty());
      const std::shared_ptr<Model> model = build_model(loaded.config, registries);  // without storage
      CHECK(count_parameters(model->parameters()) == config::parameter_count(loaded.config.model));
    }
  }
}

TEST_CASE("model: tied embeddings are one storage under one name, the other an alias", "[model]") {
  config::Config config = tiny_config();
  config.model.tie_embeddings = true;
  const auto model = tiny_model(config);
  const auto aliases = model->aliases();
  REQUIRE(aliases.size() == 1);
  CHECK(aliases[0].first == "output_head.proj.weight");
  CHECK(aliases[0].second == "token_embedding.embedding.weight");
}

TEST_CASE("init: a weight depends on seed and name alone", "[init]") {
  config::Config config = tiny_config();
  const auto two = tiny_model(config);
  config.model.n_layers = 3;
  const auto three = tiny_model(config);
  const std::string name = "layers.1.attention.q_proj.weight";
  CHECK(find(two->parameters(), name)->master.equal(find(three->parameters(), name)->master));
  CHECK(!find(two->parameters(), name)->master.equal(find(two->parameters(), "layers.0.attention.q_proj.weight")->master));
  CHECK(!find(two->parameters(), name)->master.equal(find(tiny_model(tiny_config(), 2)->parameters(), name)->master));
}

TEST_CASE("init: bf16 reads rounded matrices, full norms, and keeps fp32 masters", "[init]") {
  const auto model = tiny_model(tiny_config(), 1, at::kBFloat16);
  for (const ParameterPtr& p : model->parameters()) {
    CAPTURE(p->name);
    CHECK(p->master.scalar_type() == at::kFloat);
    CHECK(p->value.scalar_type() == (p->shape.size() > 1 ? at::kBFloat16 : at::kFloat));
    CHECK(p->value.requires_grad());
  }
}

TEST_CASE("groups: matrices decay, norms and biases do not; muon takes hidden matrices alone", "[optimizer]") {
  config::Config config = tiny_config();
  config.model.norm_type = "layernorm";
  const auto model = tiny_model(config);
  const auto groups = decay_groups(model->parameters(), 0.1);
  REQUIRE(groups.size() == 2);
  CHECK(groups[0].weight_decay == 0.1);
  CHECK(groups[1].weight_decay == 0);
  for (const ParameterPtr& p : groups[0].parameters) {
    CHECK(p->shape.size() == 2);
  }
  for (const ParameterPtr& p : groups[1].parameters) {
    CHECK(p->shape.size() == 1);
  }
  for (const ParameterPtr& p : model->parameters()) {
    CAPTURE(p->name);
    const bool hidden = p->name.find("_proj") != std::string::npos;
    CHECK(muon_takes(*p, false) == hidden);
  }
}

TEST_CASE("model: a sequence past max_seq_len is an error that names it", "[model]") {
  const auto model = tiny_model(tiny_config());
  CHECK_THROWS_WITH(logits_of(*model, random_tokens(1, 65, 1)), Catch::Matchers::Contains("model.max_seq_len (64)"));
}
