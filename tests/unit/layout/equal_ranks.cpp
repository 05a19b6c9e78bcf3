#include "equal_ranks.h"

#include <ATen/ATen.h>

#include "core/error.h"
#include "model/weight_unit.h"
#include "parallel/thread_ranks.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

namespace kf::test {
namespace {

/// What one rank has of a weight.
struct Piece {
  std::string name;
  Shape shape;
  Range range;
  at::Tensor values;
};

struct Seen {
  std::vector<double> losses, norms;
  std::vector<Piece> pieces;
};

Seen train(const config::Config& config, const World& world, const Trial& trial) {
  Bench bench(config, trial.compute, world);
  SharedRows data(world.share(), trial.packed);
  Seen out;
  for (std::int64_t step = 0; step < kSteps; ++step) {
    const StepResult result = bench.step(data, step, trial.lr);
    KF_CHECK(result.skipped.empty(), Code::other, "step {}: {}", step, result.skipped);  // Catch2 counts on one thread alone
    out.losses.push_back(result.loss);
    out.norms.push_back(result.grad_norm);
  }
  const WholeWeights whole(*bench.model);
  for (const ParameterPtr& weight : bench.model->parameters()) {
    out.pieces.push_back({weight->name, weight->shape, weight->held(), weight->value.detach().clone()});
  }
  return out;
}

/// Fills `weights` and `known` (1 where a number is known already, which must then be the same).
void add_piece(const Piece& piece, std::map<std::string, at::Tensor>& weights, std::map<std::string, at::Tensor>& known) {
  if (weights.find(piece.name) == weights.end()) {
    weights[piece.name] = at::zeros(piece.shape, piece.values.options());
    known[piece.name] = at::zeros(piece.shape, at::kBool);
  }
  const at::Tensor place = piece.range.of(weights[piece.name]), before = piece.range.of(known[piece.name]);
  INFO(piece.name);
  REQUIRE(place.sizes() == piece.values.sizes());
  CHECK(at::where(before, place, piece.values).equal(piece.values));
  place.copy_(piece.values);
  before.fill_(true);
}

Outcome joined(const std::vector<Seen>& ranks) {
  Outcome out{ranks.front().losses, ranks.front().norms, {}};
  std::map<std::string, at::Tensor> known;
  for (const Seen& rank : ranks) {
    CHECK(rank.losses == out.losses);
    CHECK(rank.norms == out.norms);
    for (const Piece& piece : rank.pieces) {
      add_piece(piece, out.weights, known);
    }
  }
  for (const auto& [name, all] : known) {
    INFO(name);
    CHECK(all.all().item<bool>());
  }
  return out;
}

std::string words(const Layout& layout) {
  std::string out;
  for (const Axis axis : kAxes) {
    if (layout.degrees[axis] > 1) {
      out += std::string(name_of(axis)) + " " + std::to_string(layout.degrees[axis]) + ", ";
    }
  }
  return out + "zero_stage " + std::to_string(layout.zero_stage);
}

}  // namespace

Batch SharedRows::batch(std::int64_t index) {
  const auto seed = static_cast<std::uint64_t>(index);
  at::Tensor labels = random_tokens(kRows, kLength, 2 * seed + 1);
  labels = labels.masked_fill(labels.lt(kTinyVocab / 4), kIgnore);
  labels[0].fill_(kIgnore);
  Batch all = make_batch(random_tokens(kRows, kLength, 2 * seed), labels);
  if (packed_) {
    all.doc_ids = at::arange(kLength).floor_divide(5 + index % 3).expand({kRows, kLength}).contiguous();
  }
  Batch mine = make_batch(rows(all.tokens), rows(all.labels));
  mine.doc_ids = packed_ ? rows(all.doc_ids) : at::Tensor();
  return mine;
}

config::Config small_config() {
  config::Config c = tiny_config();
  c.train.seq_len = kLength;
  c.train.batch_size = kRows;
  c.optimizer.eps = 1e-5;  // Adam divides what is 0 but for rounding by itself otherwise: no two orders of summation agree on that
  return c;
}

Outcome train_alone(const config::Config& config, const Trial& trial) { return joined({train(config, World(), trial)}); }

Outcome train_on(const Layout& layout, config::Config config, const Trial& trial) {
  const Mesh mesh(layout.degrees);
  config::DistributedConfig& d = config.distributed;
  d.zero_stage = layout.zero_stage;
  d.pp = layout.degrees.pp;
  d.dp_replicate = layout.degrees.dp_replicate;
  d.dp_shard = layout.degrees.dp_shard;
  d.cp = layout.degrees.cp;
  d.ep = layout.degrees.ep;
  d.tp = layout.degrees.tp;
  std::vector<Seen> ranks(static_cast<std::size_t>(mesh.size()));
  run_ranks(mesh.size(), [&](Group& all) {
    const World world(all, mesh);
    ranks[static_cast<std::size_t>(all.rank())] = train(config, world, trial);
  });
  return joined(ranks);
}

void check_near(const Outcome& many, const Outcome& one, const Trial& trial) {
  REQUIRE(many.losses.size() == one.losses.size());
  for (std::size_t i = 0; i < one.losses.size(); ++i) {
    INFO("step " << i + 1);
    CHECK(many.losses[i] == Approx(one.losses[i]).epsilon(trial.loss_share));
    CHECK(many.norms[i] == Approx(one.norms[i]).epsilon(trial.norm_share));
  }
  REQUIRE(many.weights.size() == one.weights.size());
  for (const auto& [name, weight] : one.weights) {
    INFO(name);
    CHECK((many.weights.at(name) - weight).abs().max().item<double>() <= trial.tolerance);
  }
}

void check_equal(const std::vector<Layout>& layouts, const config::Config& config, const Trial& trial) {
  const Outcome one = train_alone(config, trial);
  for (const Layout& layout : layouts) {
    INFO(words(layout));
    Trial bounds = trial;
    if (layout.degrees.tp > 1) {
      bounds.tolerance = std::max(bounds.tolerance, 1e-5);  // one rank computes a layer as one node: 1e-6 in each of ten steps
    }
    check_near(train_on(layout, config, trial), one, bounds);
  }
}

void check_repeats(const Layout& layout, const config::Config& config, const Trial& trial) {
  INFO(words(layout));
  const Outcome first = train_on(layout, config, trial), second = train_on(layout, config, trial);
  CHECK(first.losses == second.losses);
  CHECK(first.norms == second.norms);
  for (const auto& [name, weight] : first.weights) {
    INFO(name);
    CHECK(weight.equal(second.weights.at(name)));
  }
}

}  // namespace kf::test
