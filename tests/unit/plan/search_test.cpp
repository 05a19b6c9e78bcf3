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

TEST_CASE("plan: where nothing fits a search says how much the smallest needs", "[plan]") {
  Gpu small = gpu_named("h100");
  small.memory = 1e9;
  const Found none = found(job(), 8, small);
  CHECK(none.best.empty());
  CHECK(none.too_large == none.looked_at);
  CHECK(none.least_memory > 1e9);
}

}  // namespace kf::plan::test
