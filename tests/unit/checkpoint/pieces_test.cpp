// Checkpoints in pieces: written by some ranks, read by others.

#include "checkpoint/files/pieces.h"

#include <atomic>
#include <fstream>

#include "checkpoint/files/folder.h"
#include "checkpoint/files/stored_tensors.h"
#include "config/tree/json.h"
#include "core/error.h"
#include "core/log.h"
#include "parallel/rows.h"
#include "parallel/thread_ranks.h"
#include "support/checkpoints.h"
#include "support/temp_dir.h"
#include "unit/checkpoint/fakes.h"
#include "unit/checkpoint/listing.h"

#include <catch2/catch.hpp>  // after LibTorch, whose CHECK it replaces

using namespace kf;
using Catch::Matchers::Contains;
using kf::test::listing;
using test::FakeModel;
using test::FakeOptimizer;

namespace {

/// Rows that no two ranks have alike, and none on some: 7 over 4 ranks are 0, 5, 0, 2.
Shape uneven(std::int64_t length, std::int64_t parts) {
  Shape sizes(static_cast<std::size_t>(parts), 0);
  for (std::int64_t part = 1; part < parts; part += 2) {
    sizes[static_cast<std::size_t>(part)] = std::min<std::int64_t>(length, 5);
    length -= sizes[static_cast<std::size_t>(part)];
  }
  sizes.back() += length;
  return sizes;
}

/// The part of `rank`, cut along `dim`.
Range part_of(const Shape& shape, std::int64_t dim, std::int64_t rank, std::int64_t ranks) {
  const Placement cut{{{Axis::dp_shard, dim, uneven(shape[static_cast<std::size_t>(dim)], ranks), rank}}};
  return cut.of(shape);
}

/// "rows" (7, 3), "columns" (2, 9), "stack" (4, 2, 3) cut along its middle, and "scalar", which is whole on one rank.
std::map<std::string, at::Tensor> whole_tensors() {
  std::map<std::string, at::Tensor> out;
  out["rows"] = at::arange(21, at::kFloat).view({7, 3});
  out["columns"] = at::arange(18, at::kFloat).view({2, 9}).add(100);
  out["stack"] = at::arange(48, at::kDouble).view({4, 4, 3}).add(1000);
  out["scalar"] = at::scalar_tensor(42.5);
  return out;
}

const std::map<std::string, std::int64_t> kCutDim{{"rows", 0}, {"columns", 1}, {"stack", 1}};

/// Of a whole, the piece of a rank; what is not cut is the last rank's.
TensorPiece piece_here(const std::string& name, const at::Tensor& whole, const Group& group) {
  const Shape shape = whole.sizes().vec();
  if (!kCutDim.contains(name)) {
    return {name, shape, Range::whole(shape), whole};
  }
  const Range range = part_of(shape, kCutDim.at(name), group.rank(), group.size());
  return {name, shape, range, range.of(whole)};
}

Snapshot snapshot_here(const Group& group, std::int64_t step = 3) {
  Snapshot out;
  for (const auto& [name, whole] : whole_tensors()) {
    if (kCutDim.contains(name) || group.rank() == group.size() - 1) {
      out.weights.push_back(piece_here(name, whole, group));
      out.moments.push_back(piece_here(name, whole.neg(), group));
      out.moments.back().name = "exp_avg." + name;
    }
  }
  out.state.run.step = step;
  out.state.job = config::Node(config::Table{});
  out.state.values["train"] = config::Node(0.5);
  out.cpu_rng = "none";
  return out;
}

CheckpointOptions in(const fs::path& dir) { return {.dir = dir, .keep_last = 3, .keep_forever = {}}; }

/// Saves by this many ranks.
fs::path save_by(std::int64_t ranks, const fs::path& dir, std::int64_t step = 3) {
  run_ranks(ranks, [&](Group& group) {
    CheckpointManager checkpoints(in(dir));
    CheckpointWriter(checkpoints).write(CheckpointWriter::stage(snapshot_here(group, step)), group);
  });
  return dir / ("step_" + std::to_string(step));
}

bool same(const at::Tensor& a, const at::Tensor& b) { return a.scalar_type() == b.scalar_type() && at::equal(a, b); }

}  // namespace

TEST_CASE("pieces: what some ranks write in uneven parts, others read to the bit", "[checkpoint][pieces]") {
  const std::int64_t writers = GENERATE(1, 2, 4);
  const test::TempDir dir;
  const fs::path saved = save_by(writers, dir.path());
  CHECK(CheckpointManager(in(dir.path())).newest() == saved);
  const CheckpointReader all(saved);
  CHECK(join(all.weights().names(), " ") == "columns rows scalar stack");
  for (const auto& [name, whole] : whole_tensors()) {
    CHECK(all.weights().shape(name) == whole.sizes().vec());
    CHECK(same(all.weights().tensor(name), whole));
    CHECK(same(all.moments().tensor("exp_avg." + name), whole.neg()));
  }
  const std::int64_t readers = GENERATE(1, 2, 3);
  run_ranks(readers, [&](Group& group) {
    const CheckpointReader reader(saved);
    for (const auto& [name, whole] : whole_tensors()) {
      TensorPiece piece = piece_here(name, whole, group);
      const at::Tensor expected = std::exchange(piece.tensor, at::full(piece.range.size, -1, whole.options()));
      reader.weights().read(piece);
      KF_CHECK(at::equal(piece.tensor, expected), Code::other, "{} differs", name);
    }
  });
}

TEST_CASE("pieces: a range may begin and end in the middle of files, in another type and layout", "[checkpoint][pieces]") {
  const test::TempDir dir;
  const CheckpointReader reader(save_by(4, dir.path()));
  const at::Tensor whole = whole_tensors().at("rows");  // rows 0 to 4 in one file, 5 and 6 in another
  const at::Tensor into = at::zeros({2, 3}, at::kDouble).t();
  reader.weights().read({"rows", {7, 3}, {{3, 1}, {3, 2}}, into});
  CHECK(at::equal(into, whole.narrow(0, 3, 3).narrow(1, 1, 2).to(at::kDouble)));
  CHECK_THROWS_WITH(reader.weights().read({"rows", {8, 3}, {{0, 0}, {1, 3}}, at::zeros({1, 3})}),
                    Contains("model.index.json: the tensor 'rows' has another shape"));
  CHECK_THROWS_WITH(reader.weights().shape("row"), Contains("no tensor 'row'; did you mean 'rows'?"));
}

TEST_CASE("pieces: one rank writes one file and no index, more write a file each that opens by itself", "[checkpoint][pieces]") {
  const test::TempDir dir;
  CHECK(listing(save_by(1, dir / "one")) == "job.toml model.safetensors optimizer.safetensors state.json");
  const fs::path two = save_by(2, dir / "two");
  CHECK(listing(two) ==
        "job.toml model-00001-of-00002.safetensors model-00002-of-00002.safetensors model.index.json optimizer-00001-of-00002.safetensors "
        "optimizer-00002-of-00002.safetensors optimizer.index.json state.json");
  CHECK(listing(dir / "two") == "latest step_3");
  const SafetensorsFile first(two / "model-00001-of-00002.safetensors"), second(two / "model-00002-of-00002.safetensors");
  CHECK(first.names().empty());  // of two, the first rank has none of what is cut
  CHECK(same(second.tensor("rows"), whole_tensors().at("rows")));
  CHECK(second.metadata().at("format") == "pt");
}

TEST_CASE("pieces: the index tells which range of which tensor lies in which file", "[checkpoint][pieces]") {
  const test::TempDir dir;
  const fs::path saved = save_by(4, dir.path());
  const PieceIndex index =
      piece_index_from(config::parse_json(read_file(saved / "model.index.json"), "model.index.json"), saved / "model.index.json");
  const StoredTensor& rows = index.at("rows");
  CHECK(rows.shape == Shape{7, 3});
  REQUIRE(rows.parts.size() == 2);
  CHECK(rows.parts[0].file == "model-00002-of-00004.safetensors");
  CHECK(rows.parts[0].range == Range{{0, 0}, {5, 3}});
  CHECK(rows.parts[1].file == "model-00004-of-00004.safetensors");
  CHECK(rows.parts[1].range == Range{{5, 0}, {2, 3}});
  const SafetensorsFile file(saved / rows.parts[1].file);
  CHECK(same(file.tensor("rows"), whole_tensors().at("rows").narrow(0, 5, 2)));  // the part under the tensor's own name
  CHECK_THAT(read_file(saved / "model.index.json"), Contains(R"("scalar": "model-00004-of-00004.safetensors")"));
  for (const StoredPiece& part : rows.parts) {  // its bytes can be read and checked alone
    REQUIRE(part.bytes.has_value());
    const std::string bytes = read_file(saved / part.file);
    const auto size = static_cast<std::size_t>(part.range.numel()) * sizeof(float);
    REQUIRE(part.bytes->offset + size <= bytes.size());
    CHECK(part.bytes->type == "F32");
    CHECK(part.bytes->crc32 == extend_crc32(0, bytes.data() + part.bytes->offset, size));
  }
  StoredPiece old = rows.parts.front();
  old.bytes.reset();  // as earlier versions wrote it
  const PieceIndex back = piece_index_from(to_node(PieceIndex{{"rows", {rows.shape, {old}}}}), "old.json");
  CHECK_FALSE(back.at("rows").parts.front().bytes.has_value());
}

TEST_CASE("pieces: several parts of a tensor in one file have names of their own", "[checkpoint][pieces]") {
  const test::TempDir dir;
  const at::Tensor whole = at::arange(12, at::kFloat).view({6, 2});
  run_ranks(2, [&](Group& group) {
    Snapshot snapshot = snapshot_here(group);
    for (const std::int64_t begin : {group.rank() * 2, 4 + group.rank()}) {  // rows 0, 1 and 4; rows 2, 3 and 5
      const Range range{{begin, 0}, {begin < 4 ? 2 : 1, 2}};
      snapshot.weights.push_back({"scattered", {6, 2}, range, range.of(whole)});
    }
    CheckpointManager checkpoints(in(dir.path()));
    CheckpointWriter(checkpoints).write(CheckpointWriter::stage(std::move(snapshot)), group);
  });
  CHECK(same(CheckpointReader(dir / "step_3").weights().tensor("scattered"), whole));
  CHECK(SafetensorsFile(dir / "step_3/model-00001-of-00002.safetensors").contains("scattered#2"));
}

TEST_CASE("pieces: ranks that leave a part out, or write one twice, make no checkpoint", "[checkpoint][pieces]") {
  const test::TempDir dir;
  const bool twice = GENERATE(true, false);
  const auto save = [&] {
    run_ranks(2, [&](Group& group) {
      Snapshot snapshot = snapshot_here(group);
      if (twice || group.rank() == 0) {
        const std::int64_t rows = twice ? 2 : 1;
        snapshot.weights.push_back({"w", {2}, {{0}, {rows}}, at::ones({rows})});
      }
      CheckpointManager checkpoints(in(dir.path()));
      CheckpointWriter(checkpoints).write(CheckpointWriter::stage(std::move(snapshot)), group);
    });
  };
  CHECK_THROWS_WITH(save(), Contains("the parts of tensor 'w' have") && Contains(twice ? "one is there twice" : "one is missing"));
  CHECK(listing(dir.path()).empty());
}

TEST_CASE("pieces: a rank that cannot write is an error on all, and nothing stands under the final name", "[checkpoint][pieces]") {
  const test::TempDir dir;
  save_by(3, dir.path(), 2);
  std::atomic<int> told = 0;
  const auto save = [&] {
    run_ranks(3, [&](Group& group) {
      Snapshot snapshot = snapshot_here(group);
      if (group.rank() == 1) {
        snapshot.weights.push_back({"broken", {2}, {{0}, {2}}, at::zeros({2}, at::kComplexDouble)});  // no safetensors file can hold it
      }
      CheckpointManager checkpoints(in(dir.path()));
      try {
        CheckpointWriter(checkpoints).write(CheckpointWriter::stage(std::move(snapshot)), group);
      } catch (const Error& error) {
        const std::string text = error.what();
        told += error.code() == Code::checkpoint && text.find("tensor 'broken' has a type") != std::string::npos &&
                (group.rank() == 1 || text.starts_with("rank 1: "));
        throw;
      }
    });
  };
  CHECK_THROWS_WITH(save(), Contains("broken"));
  CHECK(told == 3);
  CHECK(listing(dir.path()) == "latest step_2");
  CHECK(CheckpointManager(in(dir.path())).newest() == dir / "step_2");
  save_by(3, dir.path());
  CHECK(CheckpointManager(in(dir.path())).newest() == dir / "step_3");
}

TEST_CASE("pieces: a rank that is lost in the middle of a save leaves the earlier checkpoint the newest", "[checkpoint][pieces]") {
  const test::TempDir dir;
  save_by(2, dir.path(), 2);
  const auto save = [&] {
    run_ranks(2, [&](Group& group) {
      KF_CHECK(group.rank() == 0, Code::other, "gone");
      CheckpointManager checkpoints(in(dir.path()));
      CheckpointWriter(checkpoints).write(CheckpointWriter::stage(snapshot_here(group)), group);
    });
  };
  CHECK_THROWS_WITH(save(), Contains("gone"));
  CHECK(listing(dir.path()) == "latest step_2");
}

TEST_CASE("pieces: a damaged part is found by its checksum, and the earlier checkpoint is taken", "[checkpoint][pieces]") {
  const std::string file = GENERATE(as<std::string>{}, "model-00002-of-00004.safetensors", "optimizer-00004-of-00004.safetensors",
                                    "model.index.json", "optimizer.index.json");
  const test::TempDir dir;
  const fs::path good = save_by(4, dir.path(), 2), bad = save_by(4, dir.path());
  std::string bytes = read_file(bad / file);
  bytes[bytes.size() - 3] ^= 1;
  write_file_atomic(bad / file, bytes);
  const std::size_t warnings = log::count(log::Level::warn);
  CHECK(CheckpointManager(in(dir.path())).newest() == good);
  CHECK(log::count(log::Level::warn) == warnings + 1);
  const CheckpointReader reader(bad);  // looks at the state alone
  CHECK(reader.state().run.step == 3);
  const bool moments = file.starts_with("optimizer");
  CHECK_NOTHROW(moments ? reader.weights() : reader.moments());  // only what is asked for is read
  CHECK_THROWS_WITH(moments ? reader.moments() : reader.weights(), Contains(file + " is damaged: its checksum does not match"));
  fs::remove(bad / file);
  CHECK(CheckpointManager(in(dir.path())).newest() == good);
}

TEST_CASE("pieces: a changed byte anywhere, a byte less and a byte more are found", "[checkpoint][pieces]") {
  const test::TempDir dir;
  const fs::path path = save_by(2, dir.path());
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
    files.push_back(entry.path());
  }
  REQUIRE(files.size() == 8);  // four of tensors, two indexes, state.json, job.toml
  for (const fs::path& file : files) {
    const std::string whole = read_file(file);
    const auto damaged = [&](const std::string& bytes) {
      std::ofstream(file, std::ios::binary) << bytes;  // not durable, thousands of times
      return !checkpoint_fault(path).empty();
    };
    for (std::size_t at = 0; at < whole.size(); ++at) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << at % 8));
      INFO(file << ", byte " << at);
      REQUIRE(damaged(bytes));
    }
    INFO(file);
    if (!whole.empty()) {  // job.toml is, here
      CHECK(damaged(whole.substr(0, whole.size() - 1)));
      CHECK(damaged(""));
    }
    CHECK(damaged(whole + " "));
    CHECK_FALSE(damaged(whole));
  }
}

namespace {

/// The weights of `model` cut by rows over the ranks, with the moment that FakeOptimizer has of one of them.
Placements rows_over(const Group& group) {
  return [&group](const Parameter& weight) {
    return Placement{{{Axis::dp_shard, 0, even_rows(weight.shape[0], group.size()), group.rank()}}};
  };
}

/// A model of which each weight is what lies here.
void cut(FakeModel& model, const Placements& placements) {
  for (const ParameterPtr& parameter : model.parameters()) {
    parameter->master = placements(*parameter).of(parameter->shape).of(parameter->master.detach()).clone();
    parameter->value = parameter->master;
  }
}

}  // namespace

TEST_CASE("pieces: a model and its optimizer in parts go through a checkpoint of another number of ranks", "[checkpoint][pieces]") {
  const test::TempDir dir;
  FakeModel whole;
  FakeOptimizer moments;
  for (const ParameterPtr& parameter : whole.parameters()) {
    parameter->master = at::randn(parameter->shape);
    parameter->value = parameter->master;
  }
  moments.step(0.5);
  moments.moment_ = at::randn({4, 3});
  run_ranks(3, [&](Group& group) {
    FakeModel model;
    FakeOptimizer optimizer;
    const Placements placements = rows_over(group);
    for (std::size_t i = 0; i < model.parameters().size(); ++i) {
      model.parameters()[i]->master = whole.parameters()[i]->master;
    }
    cut(model, placements);
    optimizer.step(0.5);
    optimizer.moment_ = Placement(placements(*model.parameters()[0])).of({4, 3}).of(moments.moment_);
    CheckpointManager checkpoints(in(dir.path()));
    CheckpointWriter writer(checkpoints);
    CheckpointState state;
    state.run.step = 1;
    state.job = config::Node(config::Table{});
    writer.write(CheckpointWriter::stage(writer.snapshot(state, model, optimizer, placements)), group);
  });
  FakeModel back;
  FakeOptimizer resumed;
  CHECK(test::load(dir / "step_1", back, resumed).run.step == 1);
  CHECK(same(resumed.moment_, moments.moment_));
  for (std::size_t i = 0; i < back.parameters().size(); ++i) {
    CHECK(same(back.parameters()[i]->master.detach(), whole.parameters()[i]->master));
  }
  run_ranks(2, [&](Group& group) {
    FakeModel model;
    FakeOptimizer optimizer;
    const Placements placements = rows_over(group);
    cut(model, placements);
    CheckpointReader(dir / "step_1").load(model, optimizer, {{}, {}, placements});
    for (std::size_t i = 0; i < model.parameters().size(); ++i) {
      const Parameter& weight = *model.parameters()[i];
      KF_CHECK(at::equal(weight.master, placements(weight).of(weight.shape).of(whole.parameters()[i]->master)), Code::other, "{} differs",
               weight.name);
    }
    const Range rows = placements(*model.parameters()[0]).of({4, 3});
    KF_CHECK(at::equal(optimizer.moment_, rows.of(moments.moment_)), Code::other, "the moment differs");
  });
}
