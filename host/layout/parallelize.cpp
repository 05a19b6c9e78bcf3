#include "layout/parallelize.h"

#include <algorithm>
#include <set>
#include <utility>

#include "layout/split.h"
#include "model/pipelined_model.h"
#include "parallel/rows.h"

namespace kf {
namespace {

bool can_be_cut(const Parameter& weight) { return weight.trainable && !weight.buffer && !weight.shape.empty() && lies_here(weight); }

/// Rows of what the other axes leave of it on this rank.
std::int64_t rows_of(const Parameter& weight) { return weight.placement.of(weight.shape).size[0]; }

void cut(Parameter& weight, Shape rows, const Group& shards) {
  weight.placement.cuts.push_back({Axis::dp_shard, 0, std::move(rows), shards.rank()});
}

/// Largest first, each to the rank that has least: the longest-processing-time rule (Graham 1969). Before all, those that two stages hold:
/// both come to the same owners then, whatever else they have.
void give_to_owners(ParameterList weights, const Group& shards, const PipelinedModel* pipeline) {
  const auto place = [pipeline](const ParameterPtr& weight) {
    return std::pair(pipeline != nullptr && pipeline->is_copied(*weight), weight->numel());
  };
  std::stable_sort(weights.begin(), weights.end(), [&](const ParameterPtr& a, const ParameterPtr& b) { return place(a) > place(b); });
  Shape load(static_cast<std::size_t>(shards.size()), 0);
  for (const ParameterPtr& weight : weights) {
    const auto owner = std::min_element(load.begin(), load.end());
    Shape rows(load.size(), 0);
    rows[static_cast<std::size_t>(owner - load.begin())] = rows_of(*weight);
    cut(*weight, std::move(rows), shards);
    *owner += weight->numel();
  }
}

void place(const ParameterList& weights, const Optimizer& optimizer, const Group& shards, const PipelinedModel* pipeline) {
  if (shards.size() == 1) {
    return;
  }
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
  give_to_owners(std::move(whole), shards, pipeline);
}

bool is_cut_along(const Parameter& weight, Axis axis) {
  const std::vector<Cut>& cuts = weight.placement.cuts;
  return std::any_of(cuts.begin(), cuts.end(), [&](const Cut& cut) { return cut.axis == axis; });
}

/// Along each axis over which a replica's weights are spread, either parts differ or the first rank counts.
void find_first(Parameter& weight, const World& world) {
  const bool rows = weight.placement.rows() != nullptr;
  Group& same = is_cut_along(weight, Axis::ep) ? world.expert_shards() : world.shards();
  weight.first = (rows || same.rank() == 0) && (is_cut_along(weight, Axis::tp) || world.along(Axis::tp).rank() == 0);
}

/// A weight that two modules share (tied embeddings) belongs to the unit of what is in no block.
void make_units(Model& model, const World& world, const UnitOptions& options) {
  const auto line = std::make_shared<UnitLine>(world, options);
  const ParameterList all = model.parameters();
  std::set<const Parameter*> in_blocks;
  for (const std::shared_ptr<Module>& module : model.unit_modules()) {
    ParameterList own;
    for (const auto& [name, weight] : module->named_parameters()) {
      if (in_blocks.insert(weight.get()).second) {
        own.push_back(weight);
      }
    }
    module->set_unit(std::make_shared<WeightUnit>(std::move(own), world, line));
  }
  ParameterList rest;
  std::copy_if(all.begin(), all.end(), std::back_inserter(rest),
               [&](const ParameterPtr& weight) { return lies_here(*weight) && !in_blocks.contains(weight.get()); });
  model.set_unit(std::make_shared<WeightUnit>(std::move(rest), world, line));
}

}  // namespace

UnitOptions unit_options(const config::DistributedConfig& distributed) {
  UnitOptions out(static_cast<ZeroStage>(distributed.zero_stage));
  out.prefetch = distributed.prefetch;
  out.reduce_type = distributed.reduce_dtype == "bf16" ? at::kBFloat16 : at::kFloat;
  out.each_micro = distributed.reduce_each_micro;
  return out;
}

void parallelize(Model& model, Optimizer& optimizer, const World& world, const UnitOptions& options) {
  PipelinedModel* const pipeline = as_pipeline(model);
  if (pipeline != nullptr) {
    pipeline->divide();
  }
  ParameterList experts, others;
  for (const ParameterPtr& weight : model.parameters()) {
    if (weight->placement.whole()) {  // experts that are modules have said where they lie, and so have the weights of other stages
      weight->placement.cuts = split_cuts(*weight, world.mesh(), world.rank());
    }
    (is_cut_along(*weight, Axis::ep) ? experts : others).push_back(weight);
  }
  place(others, optimizer, world.shards(), pipeline);
  place(experts, optimizer, world.expert_shards(), pipeline);
  for (Group* const ranks : {&world.stage(), &world.along(Axis::pp)}) {
    if (ranks->size() > 1) {
      optimizer.add_over(*ranks);
    }
  }
  for (const ParameterPtr& weight : model.parameters()) {
    find_first(*weight, world);
    weight->first = weight->first && (pipeline == nullptr || pipeline->counts(*weight));
  }
  if (world.data().size() == 1) {
    return;
  }
  make_units(model, world, options);
  model.share_loss_with(&world.data());
}

}  // namespace kf
