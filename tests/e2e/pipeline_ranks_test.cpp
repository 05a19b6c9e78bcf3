// What a run tells and writes beside its losses, where stages of a pipeline have the model.

#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "e2e/ranks.h"

using namespace kf::test;
using nlohmann::json;

namespace {

using Words = std::vector<std::string>;

Finished good(Finished done) {
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  return done;
}

double loss_of(const Toy& toy, Words words) {
  words.insert(words.begin(), "eval");
  words.insert(words.end(), {"--data", "text", "--format", "json"});
  return json::parse(good(toy.host(words)).out)["eval"]["loss"].get<double>();
}

}  // namespace

TEST_CASE("pipeline: watches, losses by source, the running average and exports are those of one rank", "[ranks]") {
  const Toy toy;
  const auto train = [&](int stages, const std::string& name) {
    good(toy.host({"--nproc", std::to_string(stages), "toy.toml", "--run.name=" + name, "--distributed.pp=" + std::to_string(stages),
                   "--model.tie_embeddings=true", "--optimizer.eps=1e-5", "--averaging.type=ema", "--averaging.beta=0.8",
                   "--data.dataset_path=", "--data.mix_block=8",
                   R"(--data.datasets=[{path = "text/a.txt", name = "a"}, {path = "text/b.txt", name = "b"}])",
                   R"(--metrics.watch=["grads", "params", "updates", "opt_state", "activations"])", "--metrics.watch_interval=5",
                   "--checkpoint.hf_export_interval=10", "--checkpoint.export_dtype=float32"}));
  };
  train(1, "one");
  train(2, "stages");
  Words keys{"loss", "grad_norm", "perplexity", "loss/a", "loss/b", "data/a/tokens", "data/b/epochs"};
  for (const char* kind : {"grads", "params", "updates", "opt_state/exp_avg"}) {
    for (const char* place : {"", "/token_embedding", "/layers.0", "/layers.1", "/norm"}) {
      keys.push_back("watch/" + std::string(kind) + place);
    }
  }
  for (const char* place : {"embed", "layers.0", "layers.1", "norm"}) {
    keys.push_back("watch/activations/" + std::string(place));
  }
  check_same_rows(toy, "one", "stages", keys);
  CHECK(loss_of(toy, {"runs/stages", "--weights", "average"}) == Approx(loss_of(toy, {"runs/one", "--weights", "average"})).epsilon(1e-6));
  CHECK(loss_of(toy, {"runs/stages/exports/step_10"}) == Approx(loss_of(toy, {"runs/one/exports/step_10"})).epsilon(1e-6));
  CHECK(toy.read("runs/stages/exports/step_10/config.json") == toy.read("runs/one/exports/step_10/config.json"));
}
