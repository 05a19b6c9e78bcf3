#include "model/transformer/planned_split.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "core/error.h"
#include "core/log.h"
#include "core/name_pattern.h"
#include "model/layer/runs_whole.h"
#include "model/moe/moe.h"
#include "model/transformer/adapters.h"
#include "model/transformer/transformer.h"
#include "parallel/world.h"

namespace kf {
namespace {

using Layers = std::map<const Parameter*, std::shared_ptr<Linear>>;

bool divides(Split how) { return how == Split::colwise || how == Split::rowwise; }

std::string_view word_of(Split how) {
  return how == Split::vocab ? "colwise" : how == Split::experts ? "experts" : kSplitNames[static_cast<std::size_t>(how)];
}

/// The layers of weights and biases.
Layers layers_of(const Model& model) {
  Layers out;
  for (const auto& [name, layer] : linear_layers(model)) {
    out[layer->weight().get()] = layer;
    if (layer->bias()) {
      out[layer->bias().get()] = layer;
    }
  }
  return out;
}

/// `how` as a hint of the weight, unless its native layer says the same already.
void take(Parameter& weight, Split how, const std::string& plan) {
  const bool script = weight.split_hint || weight.split == Split::replicate;
  const bool rows = weight.split == Split::vocab;  // of the embedding and the head, which are outputs by another name
  const bool same = rows ? how == Split::colwise : weight.split == how || (!divides(weight.split) && !divides(how));
  KF_CHECK(script || same, Code::config,
           "distributed.plan = \"{}\" wants {} divided '{}', but it is a native layer's, which divides it '{}' by itself; leave it out of "
           "the plan",
           plan, weight.name, word_of(how), word_of(weight.split));
  if (script) {
    weight.split = how;
    weight.split_hint = true;
  }
}

/// Weights of layers that run whole: a native layer inside of a script's module, or model, is not divided. A layer of experts is, wherever
/// it stands: it takes and gives what all ranks have alike, and knows the ranks that share it.
void leave_whole(const Module& module, bool whole) {
  whole = (whole && dynamic_cast<const MoeLayer*>(&module) == nullptr) || dynamic_cast<const RunsWhole*>(&module) != nullptr;
  for (const auto& [name, weight] : module.own_parameters()) {
    if (whole && !weight->split_hint) {
      weight->split = Split::replicate;
      weight->split_unit = 1;
    }
  }
  for (const auto& [name, child] : module.children()) {
    leave_whole(*child, whole);
  }
}

bool is_cut_along(const Parameter& weight, Axis axis) {
  const std::vector<Cut>& cuts = weight.placement.cuts;
  return std::any_of(cuts.begin(), cuts.end(), [&](const Cut& cut) { return cut.axis == axis; });
}

void apply_plan(Model& model, const config::Config& config, const Registries& registries) {
  const std::string& name = config.distributed.plan;
  if (name.empty()) {
    return;
  }
  for (const auto& [pattern, how] : make_part(registries.parallel_plan, name, config, registries)) {
    const auto* const word = std::find(std::begin(kSplitNames), std::end(kSplitNames), how);
    const NamePattern matches(pattern, "parallel_plan '" + name + "'");
    for (const ParameterPtr& weight : model.parameters()) {
      if (matches.matches(weight->name)) {
        take(*weight, static_cast<Split>(word - std::begin(kSplitNames)), name);
      }
    }
  }
}

}  // namespace

void split_as_planned(Model& model, const config::Config& config, const Registries& registries, const World* world) {
  if (world == nullptr || world->along(Axis::tp).size() == 1) {
    return;
  }
  leave_whole(model, dynamic_cast<const Transformer*>(&model) == nullptr);
  apply_plan(model, config, registries);
  const Layers layers = layers_of(model);
  std::int64_t divided = 0, whole = 0;
  for (const ParameterPtr& weight : model.parameters()) {
    if (!weight->split_hint) {
      continue;
    }
    const auto layer = layers.find(weight.get());
    const bool bias = layer != layers.end() && layer->second->weight() != weight;
    if (bias && divides(layer->second->weight()->split)) {
      continue;  // it goes with its weight
    }
    if (!divides(weight->split)) {
      weight->split = Split::replicate;
      ++whole;
      continue;
    }
    KF_CHECK(layer != layers.end() && !bias, Code::config,
             "{} is to be divided over distributed.tp = {} ('{}'), but it is no linear layer's weight: what reads it reads all of it. Make "
             "it the weight of a kf.nn.linear, or say 'replicate'",
             weight->name, world->along(Axis::tp).size(), word_of(weight->split));
    KF_CHECK(
        !is_cut_along(*weight, Axis::ep), Code::config,
        "{} is to be divided over distributed.tp = {} ('{}'), but it is an expert's, which lies whole on one rank along distributed.ep "
        "= {}: say 'replicate', or use distributed.ep = 1",
        weight->name, world->along(Axis::tp).size(), word_of(weight->split), world->along(Axis::ep).size());
    layer->second->stand_alone(TensorRanks(world->along(Axis::tp), false));
    ++divided;
  }
  if (divided + whole > 0) {
    log::info("weights of scripts over distributed.tp = {}: {} divided, {} on every rank", world->along(Axis::tp).size(), divided, whole);
  }
}

}  // namespace kf
