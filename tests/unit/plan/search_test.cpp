// Layouts of a world, the fastest first.

#include "plan/search.h"

#include "core/text.h"
#include "unit/config/job.h"
#include "unit/plan/model.h"

#include <algorithm>

namespace kf::plan::test {
namespace {

config::Loaded job(std::vector<std::string> more = {}) {
  std::vector<std::string> keys{
      "--model.dim=4096",         "--model.n_layers=32",          "--model.n_heads=32",        "--model.n_kv_heads=8",
      "--model.vocab_size=32000", "--model.ffn_hidden_dim=14336", "--train.batch_size=1",      "--train.seq_len=4096",
      "--model.max_seq_len=4096", "--train.mixed_precision=bf16", "--train.grad_accum_steps=8"};
  keys.insert(keys.end(), more.begin(), more.end());
  return kf::test::load_cli(keys);
}

Found found(const config::Loaded& loaded, std::int64_t world, const Gpu& gpu = gpu_named("h100")) {
  return search(loaded, weights_of(loaded.config.model), gpu, world, 10);
}

}  // namespace

TEST_CASE("plan: a search ranks what fits by time, and keeps the sequences of an update", "[plan]") {
  const config::Loaded loaded = job();
  const Found all = found(loaded, 16);
  REQUIRE(all.best.size() == 10);
  CHECK(all.looked_at > 100);
  CHECK(std::is_sorted(all.best.begin(), all.best.end(),
                       [](const Candidate& a, const Candidate& b) { return a.step.time.total < b.step.time.total; }));
  for (const Candidate& one : all.best) {
    CAPTURE(one.settings());
    CHECK(one.degrees.product() == 16);
    CHECK(one.degrees.tp <= 8);
    for (const Axis axis : kAxes) {
      const std::string word = format("--distributed.{}={} ", name_of(axis), one.degrees[axis]);
      CHECK(one.settings().find(word) != std::string::npos);
    }
    CHECK(one.memory <= kUsableMemory * 80e9);
    CHECK(one.degrees.dp_replicate * one.degrees.dp_shard * one.degrees.ep * one.batch_size * one.micros == 16 * 8);
  }
  CHECK(all.best[0].settings().find("--train.batch_size=") != std::string::npos);
}

TEST_CASE("plan: a search looks at no layout that the rules refuse", "[plan]") {
  const Found all = found(job({"--model.n_layers=3"}), 8);
  for (const Candidate& one : all.best) {
    CHECK(one.degrees.pp <= 3);
    CHECK(one.degrees.ep == 1);  // without experts
  }
}

TEST_CASE("plan: a search that takes equal layers and slow layouts together finds what planning each one finds", "[plan]") {
  const config::Loaded loaded = job({"--model.n_layers=12", "--distributed.pp_schedule=1f1b", "--train.activation_checkpointing=full"});
  Weights weights = weights_of(loaded.config.model);
  find_alike(loaded.config, weights);
  CHECK(weights.alike == std::vector<std::int64_t>(12, 0));
  std::int64_t calls = 0, all = 0;
  const Found quick = search(loaded, weights, gpu_named("h100"), 32, 10, [&](std::int64_t done, std::int64_t of) {
    CHECK(done == ++calls);
    all = of;
  });
  CHECK(calls == all);
  const Found whole = search(loaded, weights_of(loaded.config.model), gpu_named("h100"), 32, 1000000);
  CHECK(quick.looked_at == whole.looked_at);
  CHECK(quick.too_large == whole.too_large);
  REQUIRE(quick.best.size() == 10);
  CHECK(std::int64_t(whole.best.size()) == whole.looked_at - whole.too_large);
  for (std::size_t i = 0; i < quick.best.size(); ++i) {
    CHECK(quick.best[i].step.time.total == Approx(whole.best[i].step.time.total).epsilon(1e-9));
  }
}

TEST_CASE("plan: layers are alike where their weights are, and what is computed with them", "[plan]") {
  config::Loaded loaded = job({"--model.n_layers=4"});
  loaded.config.model.layer_pattern = {"global", "local"};
  loaded.config.model.window = 512;
  Weights weights = weights_of(loaded.config.model);
  find_alike(loaded.config, weights);
  CHECK(weights.alike == std::vector<std::int64_t>{0, 1, 0, 1});
  for (Weight& weight : weights.all) {
    weight.trains = !weight.name.starts_with("layers.2.");
  }
  find_alike(loaded.config, weights);
  CHECK(weights.alike == std::vector<std::int64_t>{0, 1, 2, 1});
}

TEST_CASE("plan: where nothing fits a search says how much the smallest needs", "[plan]") {
  Gpu small = gpu_named("h100");
  small.memory = 1e9;
  const Found none = found(job(), 8, small);
  CHECK(none.best.empty());
  CHECK(none.too_large == none.looked_at);
  CHECK(none.least_memory > 1e9);
}

}  // namespace kf::plan::test
