#include "layout/parallelize.h"

#include <algorithm>
#include <set>
#include <utility>

#include "layout/split.h"
#include "parallel/rows.h"

namespace kf {
namespace {

bool can_be_cut(const Parameter& weight) { return weight.trainable && !weight.buffer && !weight.shape.empty(); }

/// Rows of what the other axes leave of it on this rank.
std::int64_t rows_of(const Parameter& weight) { return weight.placement.of(weight.shape).size[0]; }

void cut(Parameter& weight, Shape rows, const Group& shards) {
  weight.placement.cuts.push_back({Axis::dp_shard, 0, std::move(rows), shards.rank()});
}

/// Largest first, each to the rank that has least: the longest-processing-time rule (Graham 1969).
void give_to_owners(ParameterList weights, const Group& shards) {
  std::stable_sort(weights.begin(), weights.end(), [](const ParameterPtr& a, const ParameterPtr& b) { return a->numel() > b->numel(); });
  Shape load(static_cast<std::size_t>(shards.size()), 0);
  for (const ParameterPtr& weight : weights) {
    const auto owner = std::min_element(load.begin(), load.end());
    Shape rows(load.size(), 0);
    rows[static_cast<std::size_t>(owner - load.begin())] = rows_of(*weight);
    cut(*weight, std::move(rows), shards);
    *owner += weight->numel();
  }
}

void place(const ParameterList& weights, const Optimizer& optimizer, const Group& shards) {
  ParameterList whole;
  for (const ParameterPtr& weight : weights) {
    if (!can_be_cut(*weight)) {
      continue;
    }
    if (optimizer.needs(*weight) == Optimizer::Needs::elements) {
      cut(*weight, even_rows(rows_of(*weight), shards.size()), shards);
    } else {
      whole.push_back(weight);
    }
  }
  give_to_owners(std::move(whole), shards);
}

/// Along each axis over which a replica's weights are spread, either parts differ or the first rank counts.
void find_first(Parameter& weight, const World& world) {
  const auto cut_along = [&](Axis axis) {
    return std::any_of(weight.placement.cuts.begin(), weight.placement.cuts.end(), [&](const Cut& cut) { return cut.axis == axis; });
  };
  const bool rows = weight.placement.rows() != nullptr;
  Group& same = cut_along(Axis::ep) ? world.expert_shards() : world.shards();
  weight.first = (rows || same.rank() == 0) && (cut_along(Axis::tp) || world.along(Axis::tp).rank() == 0);
}

/// A weight that two modules share (tied embeddings) belongs to the unit of what is in no block.
void make_units(Model& model, const World& world, ZeroStage stage) {
  const ParameterList all = model.parameters();
  std::set<const Parameter*> in_blocks;
  for (const std::shared_ptr<Module>& module : model.unit_modules()) {
    ParameterList own;
    for (const auto& [name, weight] : module->named_parameters()) {
      if (in_blocks.insert(weight.get()).second) {
        own.push_back(weight);
      }
    }
    module->set_unit(std::make_shared<WeightUnit>(std::move(own), world, stage));
  }
  ParameterList rest;
  std::copy_if(all.begin(), all.end(), std::back_inserter(rest),
               [&](const ParameterPtr& weight) { return !in_blocks.contains(weight.get()); });
  model.set_unit(std::make_shared<WeightUnit>(std::move(rest), world, stage));
}

}  // namespace

void parallelize(Model& model, Optimizer& optimizer, const World& world, ZeroStage stage) {
  for (const ParameterPtr& weight : model.parameters()) {
    weight->placement.cuts = split_cuts(*weight, world.mesh(), world.rank());
  }
  if (world.shards().size() > 1) {
    place(model.parameters(), optimizer, world.shards());
  }
  if (world.stage().size() > 1) {
    optimizer.add_over(world.stage());
  }
  for (const ParameterPtr& weight : model.parameters()) {
    find_first(*weight, world);
  }
  if (world.data().size() == 1) {
    return;
  }
  make_units(model, world, stage);
  model.share_loss_with(&world.data());
}

}  // namespace kf
