// A real checkpoint, saved where layers are divided, goes on in other layouts and comes back to the bit.

#include "checkpoint/manager.h"
#include "checkpoint/own_pieces.h"
#include "checkpoint/reader.h"
#include "checkpoint/writer.h"
#include "equal_ranks.h"
#include "parallel/thread_ranks.h"
#include "support/temp_dir.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

using namespace kf;
using namespace kf::test;

namespace {

void save(const fs::path& dir, Bench& bench, const World& world) {
  CheckpointManager checkpoints({.dir = dir, .keep_last = 3, .keep_forever = {}});
  CheckpointWriter writer(checkpoints);
  CheckpointState state;
  state.run.step = 1;
  state.job = config::Node(config::Table{});
  Snapshot snapshot = writer.snapshot(state, *bench.model, *bench.optimizer);
  keep_own_pieces(snapshot, *bench.model, world);
  writer.write(CheckpointWriter::stage(std::move(snapshot)), world.files());
}

/// Runs `body` on all ranks of a layout, each with a bench.
template <class Body>
void on(const PerAxis& degrees, config::Config config, const Body& body) {
  config.distributed.tp = degrees.tp;
  config.distributed.dp_shard = degrees.dp_shard;
  const Mesh mesh(degrees);
  run_ranks(mesh.size(), [&](Group& all) {
    const World world(all, mesh);
    Bench bench(config, at::kFloat, world);
    body(bench, world);
  });
}

/// Every tensor of two checkpoints.
void check_same(const StoredTensors& a, const StoredTensors& b) {
  REQUIRE(a.names() == b.names());
  for (const std::string& name : a.names()) {
    INFO(name);
    CHECK(a.tensor(name).equal(b.tensor(name)));
  }
}

}  // namespace

TEST_CASE("moved checkpoints: weights and moments that tp has divided are the same in every layout", "[tensor_parallel][checkpoint]") {
  const test::TempDir dir;
  config::Config c = small_config();
  c.model.vocab_size = 100;
  c.optimizer.name = GENERATE("adamw", "muon");
  SECTION("dense") { c.model.qk_norm = true; }
  SECTION("experts") {
    c.model.num_experts = 4;
    c.model.moe_top_k = 2;
    c.model.moe_packed_experts = GENERATE(false, true);
  }
  on({1, 1, 1, 1, 1, 2}, c, [&](Bench& bench, const World& world) {
    SharedRows data(world.share(), false);
    bench.step(data, 0, 1e-3);
    save(dir / "first", bench, world);
  });
  const CheckpointReader first(dir / "first/step_1");
  std::vector<PerAxis> others{{1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 4}, {1, 1, 2, 1, 1, 1}, {1, 1, 2, 1, 1, 2}};
  for (std::size_t i = 0; i < others.size(); ++i) {
    CAPTURE(c.optimizer.name, i);
    const fs::path there = dir / ("other" + std::to_string(i));
    on(others[i], c, [&](Bench& bench, const World& world) {
      CheckpointReader(dir / "first/step_1").load(*bench.model, *bench.optimizer);
      save(there, bench, world);
    });
    const CheckpointReader moved(there / "step_1");
    check_same(moved.weights(), first.weights());
    check_same(moved.moments(), first.moments());
  }
}

TEST_CASE(
    "moved checkpoints: moments in 8 bits are fp32 in the file, and the same numbers wherever parts of weights end with a block of 256",
    "[data_parallel][checkpoint]") {
  const test::TempDir dir;
  config::Config c = small_config();
  c.model.dim = 64;
  c.model.ffn_hidden_dim = 128;
  c.model.vocab_size = 128;
  c.optimizer.state_dtype_m = c.optimizer.state_dtype_v = GENERATE("int8", "fp8");
  CAPTURE(c.optimizer.state_dtype_m);
  on({1, 1, 2, 1, 1, 1}, c, [&](Bench& bench, const World& world) {
    SharedRows data(world.share(), false);
    bench.step(data, 0, 1e-3);
    save(dir / "first", bench, world);
  });
  const CheckpointReader first(dir / "first/step_1");
  for (const std::string& name : first.moments().names()) {
    CHECK(first.moments().tensor(name).scalar_type() == at::kFloat);
  }
  const std::vector<PerAxis> others{{1, 1, 1, 1, 1, 1}, {1, 1, 2, 1, 1, 1}, {1, 1, 4, 1, 1, 1}};
  for (std::size_t i = 0; i < others.size(); ++i) {
    CAPTURE(i);
    const fs::path there = dir / ("other" + std::to_string(i));
    on(others[i], c, [&](Bench& bench, const World& world) {
      CheckpointReader(dir / "first/step_1").load(*bench.model, *bench.optimizer);
      save(there, bench, world);
    });
    check_same(CheckpointReader(there / "step_1").moments(), first.moments());
  }
}
