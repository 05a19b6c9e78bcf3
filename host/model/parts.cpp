#include "model/parts.h"

#include "config/derived.h"
#include "model/moe.h"

namespace kf {
namespace {

/// The part `name` of a kind, with its own options.
template <class Factory>
auto make(const Registry<Factory>& registry, const std::string& name, const PartArgs& args, const Place& place) {
  const PartArgs own{args.config, Registries::options_of(args.config, registry.kind(), name), args.registries};
  return registry.get(name).factory(own, place);
}

}  // namespace

std::shared_ptr<Norm> make_norm(const PartArgs& args, const Place& place) {
  return make(args.registries.norm, args.config.model.norm_type, args, place);
}

std::shared_ptr<Mlp> make_mlp(const PartArgs& args, const Place& place) {
  const config::ModelConfig& m = args.config.model;
  if (config::is_moe_layer(m, place.layer) && !m.moe_beside_dense) {
    return make_moe(args, place);
  }
  Place inside = place;
  inside.hidden = config::ffn_hidden_dim(args.config.model);
  return make(args.registries.mlp, config::mlp_name(args.config.model.activation), args, inside);
}

std::shared_ptr<Attention> make_attention(const PartArgs& args, const Place& place) {
  return make(args.registries.attention, args.config.model.attention, args, place);
}

std::shared_ptr<Block> make_block(const PartArgs& args, const Place& place) {
  return make(args.registries.block, args.config.model.block, args, place);
}

NormOptions norm_options(const config::Config& config) {
  const config::ModelConfig& m = config.model;
  return {m.norm_eps, m.norm_weight, m.norm_unit_offset, m.norm_bias, config.train.compile_model};
}

}  // namespace kf
