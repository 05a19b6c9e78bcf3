#include "train/loop/planned_weights.h"

#include <map>
#include <string_view>

#include "optim/state_bytes.h"

namespace kf {
namespace {

/// The linear layers that have a LoRA: its matrices stand beside their weights, "layers.0.attention.q_proj.lora.a" (rank, in) and ".b"
/// (out, rank).
std::vector<config::AdaptedLayer> adapted_layers(const ParameterList& parameters) {
  constexpr std::string_view first = ".lora.a", second = ".lora.b";
  std::map<std::string, config::AdaptedLayer> layers;
  for (const ParameterPtr& p : parameters) {
    if (!p->added || !(p->name.ends_with(first) || p->name.ends_with(second))) {
      continue;
    }
    const std::string name = p->name.substr(0, p->name.size() - first.size());
    config::AdaptedLayer& layer = layers[name];
    layer.name = name;
    if (p->name.ends_with(first)) {
      layer.rank = static_cast<double>(p->shape[0]);
      layer.in = static_cast<double>(p->shape[1]);
    } else {
      layer.out = static_cast<double>(p->shape[0]);
    }
  }
  std::vector<config::AdaptedLayer> out;
  for (auto& [name, layer] : layers) {
    out.push_back(std::move(layer));
  }
  return out;
}

plan::Weight::Cut cut_of(Split split) {
  switch (split) {
    case Split::colwise:
    case Split::vocab: return plan::Weight::Cut::rows;
    case Split::rowwise: return plan::Weight::Cut::columns;
    case Split::experts:
    case Split::sequence:
    case Split::replicate: break;
  }
  return plan::Weight::Cut::none;
}

}  // namespace

plan::Weights planned_weights(const config::Config& config, const ParameterList& parameters) {
  const OptimizerBytes optimizer = optimizer_bytes(config, parameters);
  plan::Weights out;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& p = *parameters[i];
    plan::Weight weight;
    weight.name = p.name;
    weight.shape = p.shape;
    weight.cut = cut_of(p.split);
    weight.experts = p.split == Split::experts || (p.stack && p.shape.size() == 3);
    weight.unit = p.split_unit;
    weight.low = p.shape.size() >= 2 && !p.keep_fp32;
    weight.trains = p.trainable;
    weight.buffer = p.buffer;
    weight.whole = optimizer.whole[i];
    weight.state_bytes = optimizer.each[i];
    out.all.push_back(std::move(weight));
  }
  out.adapters = adapted_layers(parameters);
  out.copies = optimizer.copies;
  out.by_tensor = optimizer.by_tensor;
  out.known = optimizer.known && (config.adapter.name.empty() || config.adapter.name == "lora");
  plan::find_alike(config, out);
  return out;
}

}  // namespace kf
