#include "model/transformer/parts.h"

#include "config/plan/derived.h"
#include "model/moe/moe.h"
#include "model/transformer/whole_parts.h"

namespace kf {
namespace {

/// By its registered name; what a script has made runs whole on every rank.
template <class Factory>
auto made(const Registry<Factory>& registry, const std::string& name, const PartArgs& args, const Place& place) {
  auto part = make_part(registry, name, args, place);
  return registry.get(name).info.origin == "native" ? part : whole_part(std::move(part), TensorRanks(args));
}

}  // namespace

std::shared_ptr<Norm> make_norm(const PartArgs& args, const Place& place) {
  std::shared_ptr<Norm> norm = make_part(args.registries.norm, args.config.model.norm_type, args, place);
  TensorRanks(args).between(*norm);
  return norm;
}

std::shared_ptr<Mlp> make_mlp(const PartArgs& args, const Place& place) {
  const config::ModelConfig& m = args.config.model;
  if (config::is_moe_layer(m, place.layer) && !m.moe_beside_dense) {
    return make_moe(args, place);
  }
  Place inside = place;
  inside.hidden = config::ffn_hidden_dim(args.config.model);
  return made(args.registries.mlp, config::mlp_name(args.config.model.activation), args, inside);
}

std::shared_ptr<Attention> make_attention(const PartArgs& args, const Place& place) {
  return made(args.registries.attention, args.config.model.attention, args, place);
}

std::shared_ptr<Block> make_block(const PartArgs& args, const Place& place) {
  return made(args.registries.block, args.config.model.block, args, place);
}

}  // namespace kf
