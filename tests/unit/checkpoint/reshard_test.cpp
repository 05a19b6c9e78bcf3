// Checkpoints across layouts of a real model: rows, columns, experts and stages, experts in either form.

#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <set>

#include "checkpoint/files/pieces.h"
#include "checkpoint/manager.h"
#include "checkpoint/reader.h"
#include "checkpoint/writer.h"
#include "config/plan/stages.h"
#include "core/error.h"
#include "layout/split.h"
#include "model/transformer/transformer.h"
#include "parallel/rows.h"
#include "parallel/thread_ranks.h"
#include "support/temp_dir.h"
#include "support/tiny.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

using namespace kf;
using namespace kf::test;

namespace {

/// Experts beside columns, rows and a vocabulary to cut.
config::Config config_of(bool packed) {
  config::Config config = tiny_config();
  config.model.n_kv_heads = 4;
  config.model.vocab_size = 96;
  config.model.num_experts = 4;
  config.model.moe_top_k = 2;
  config.model.moe_ffn_dim = 16;
  config.model.moe_packed_experts = packed;
  return config;
}

/// As layout/parallelize makes it: tp and ep, then rows of what they leave.
Placement placement_of(const Parameter& weight, const Mesh& mesh, std::int64_t rank) {
  Placement out{split_cuts(weight, mesh, rank)};
  const std::int64_t shards = mesh.degree(Axis::dp_shard);
  if (shards > 1 && !weight.buffer && !weight.shape.empty()) {
    out.cuts.push_back({Axis::dp_shard, 0, even_rows(out.of(weight.shape).size[0], shards), mesh.coordinate(rank, Axis::dp_shard)});
  }
  return out;
}

Placements placements_on(const Mesh& mesh, std::int64_t rank) {
  return [&mesh, rank](const Parameter& weight) { return placement_of(weight, mesh, rank); };
}

/// A model of which each weight is what lies here.
std::shared_ptr<Model> model_here(const config::Config& config, std::uint64_t seed, const Mesh& mesh, std::int64_t rank) {
  std::shared_ptr<Model> model = tiny_model(config, seed);
  for (const ParameterPtr& weight : model->parameters()) {
    weight->master = placement_of(*weight, mesh, rank).of(weight->shape).of(weight->master.detach()).clone();
    weight->value = weight->master;
  }
  return model;
}

/// Whether an earlier rank has the same part.
bool is_copy(const Parameter& weight, const Mesh& mesh, std::int64_t rank) {
  const Range own = placement_of(weight, mesh, rank).of(weight.shape);
  for (std::int64_t other = 0; other < rank; ++other) {
    if (placement_of(weight, mesh, other).of(weight.shape) == own) {
      return true;
    }
  }
  return false;
}

/// What a rank writes: its parts, and as a moment "m" of each weight its double.
Snapshot snapshot_here(Model& model, const Mesh& mesh, std::int64_t rank) {
  Snapshot out;
  for (const ParameterPtr& weight : model.parameters()) {
    if (is_copy(*weight, mesh, rank)) {
      continue;
    }
    const Placement placement = placement_of(*weight, mesh, rank);
    for (const StoredView& view : weight->stored()) {
      if (auto piece = piece_of(*weight, view, placement)) {
        out.weights.push_back(std::move(*piece));
      }
    }
    out.moments.push_back({"m." + weight->name, weight->shape, placement.of(weight->shape), weight->master.detach() * 2});
  }
  out.state.run.step = 1;
  out.state.job = config::Node(config::Table{});
  out.cpu_rng = "none";
  return out;
}

fs::path save(const fs::path& dir, const config::Config& config, const Mesh& mesh) {
  run_ranks(mesh.size(), [&](Group& group) {
    CheckpointManager checkpoints({.dir = dir, .keep_last = 3, .keep_forever = {}});
    const std::shared_ptr<Model> model = model_here(config, 1, mesh, group.rank());
    CheckpointWriter(checkpoints).write(CheckpointWriter::stage(snapshot_here(*model, mesh, group.rank())), group);
  });
  return dir / "step_1";
}

void check_here(const fs::path& saved, Model& whole, const config::Config& config, const Mesh& mesh, Group& group) {
  const std::shared_ptr<Model> model = model_here(config, 2, mesh, group.rank());
  WeightPlaces places;
  places.placements = placements_on(mesh, group.rank());
  places.check = shared_check(group);
  const CheckpointReader reader(saved, places.check);
  reader.load_weights(*model, places);
  const MomentPlaces moments(*model, places.placements);
  for (std::size_t i = 0; i < model->parameters().size(); ++i) {
    const Parameter& weight = *model->parameters()[i];
    const at::Tensor expected = placement_of(weight, mesh, group.rank()).of(weight.shape).of(whole.parameters()[i]->master.detach());
    KF_CHECK(at::equal(weight.master.detach(), expected), Code::other, "{} differs on rank {}", weight.name, group.rank());
    const std::string name = "m." + weight.name;
    const Range range = moments.range(name, weight.shape);
    const at::Tensor moment = at::empty(range.size);
    reader.moments().read({name, weight.shape, range, moment});
    KF_CHECK(at::equal(moment, expected * 2), Code::other, "{} differs on rank {}", name, group.rank());
  }
}

// pp, dp_replicate, dp_shard, cp, ep, tp
const std::vector<PerAxis> kLayouts{{1, 1, 1, 1, 1, 1}, {1, 1, 3, 1, 1, 1}, {1, 1, 1, 1, 1, 2}, {1, 1, 1, 1, 2, 1},
                                    {1, 1, 2, 1, 1, 2}, {1, 1, 2, 1, 4, 1}, {1, 2, 1, 1, 1, 4}, {1, 1, 1, 1, 2, 2}};

}  // namespace

TEST_CASE("reshard: what any layout has written any other reads to the bit, experts packed or apart", "[checkpoint][reshard]") {
  const std::size_t writers = GENERATE(range<std::size_t>(0, 8));
  const bool packed = GENERATE(true, false);
  const test::TempDir dir;
  const fs::path saved = save(dir.path(), config_of(packed), Mesh(kLayouts[writers]));
  const std::shared_ptr<Model> whole = tiny_model(config_of(packed), 1);
  for (std::size_t readers = 0; readers < kLayouts.size(); ++readers) {
    CAPTURE(writers, readers, packed);
    const Mesh mesh(kLayouts[readers]);
    const config::Config config = config_of((readers % 2 == 0) == packed);  // into the other form, too
    CHECK_NOTHROW(run_ranks(mesh.size(), [&](Group& group) { check_here(saved, *whole, config, mesh, group); }));
  }
}

TEST_CASE("reshard: stages of a model write what the whole model reads, and read what it has written", "[checkpoint][reshard]") {
  const config::Config config = config_of(false);
  const Registries registries = native_registries();
  const Mesh one;
  const std::shared_ptr<Model> whole = tiny_model(config, 1);
  const auto stage_here = [&](std::int64_t rank, std::uint64_t seed) {
    const PartArgs args{config, {}, registries, registries.kernels_of(config)};
    const config::Stage stage = rank == 0 ? config::Stage{0, 1, true, false} : config::Stage{1, 2, false, true};
    auto model = std::make_shared<Transformer>(args, stage);
    materialize(*model, at::kCPU, at::kFloat, seed);
    return model;
  };
  const test::TempDir dir;
  run_ranks(2, [&](Group& group) {
    CheckpointManager checkpoints({.dir = dir / "stages", .keep_last = 3, .keep_forever = {}});
    const auto model = stage_here(group.rank(), 1);
    CheckpointWriter(checkpoints).write(CheckpointWriter::stage(snapshot_here(*model, one, 0)), group);
  });
  run_ranks(1, [&](Group& group) { check_here(dir / "stages/step_1", *whole, config, one, group); });
  save(dir / "whole", config, one);
  std::set<std::string> read;
  for (const std::int64_t rank : {0, 1}) {
    const auto model = stage_here(rank, 2);
    const CheckpointReader reader(dir / "whole/step_1");
    for (const TensorPiece& piece : pieces_of(*model)) {
      reader.weights().read(piece);
      CHECK(at::equal(piece.tensor, reader.weights().tensor(piece.name)));
      read.insert(piece.name);
    }
  }
  const CheckpointReader all(dir / "whole/step_1");
  const std::vector<std::string> names = all.weights().names();
  CHECK(read == std::set<std::string>(names.begin(), names.end()));
}
