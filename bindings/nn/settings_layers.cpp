#include "bindings/nn/settings_layers.h"

#include <ATen/ATen.h>

#include "bindings/nn/build_scope.h"
#include "bindings/nn/context_box.h"
#include "bindings/nn/layer_options.h"
#include "bindings/nn/module_box.h"
#include "bindings/nn/settings_keys.h"
#include "bindings/session/session.h"
#include "bindings/tensor/tensor.h"
#include "bindings/vm/stack.h"
#include "config/plan/derived.h"
#include "core/error.h"
#include "model/layer/attention.h"
#include "model/layer/mlp.h"
#include "model/layer/norm.h"
#include "model/layer/place.h"
#include "model/moe/moe.h"

namespace kf::lua {
namespace {

int call_norm(lua_State* L, Module& module) {
  push_tensor(L, static_cast<Norm&>(module).forward(check_tensor(L, 2, "the input of a layer")), Memory::fresh);
  return 1;
}

int call_mlp(lua_State* L, Module& module) {
  const at::Tensor& x = check_tensor(L, 2, "the input of a layer");
  push_tensor(L, static_cast<const Mlp&>(module).forward(x, ForwardUnderWay::now()), Memory::fresh);
  return 1;
}

/// attention(x [, ctx]): without ctx every row is one document from its start.
int call_attention(lua_State* L, Module& module) {
  const at::Tensor& x = check_tensor(L, 2, "nn.attention");
  KF_CHECK(x.dim() == 3, Code::script, "nn.attention: expected x (B, T, C), got {}", tensor_text(x));
  const auto& attention = static_cast<const Attention&>(module);
  const ForwardContext* context = context_at(L, 3, "nn.attention");
  push_tensor(L, context != nullptr ? attention.forward(x, *context) : attention.forward(x, plain_context(x, x.size(1))), Memory::fresh);
  return 1;
}

}  // namespace

int make_norm_layer(lua_State* L) {
  const Session& session = Session::of(L);
  config::Config config = base_config();
  const std::string type = check_text(L, 1, "nn.norm", "a registered norm");
  const std::int64_t dim = check_size(L, 2, "nn.norm", "the width of its input");
  if (!lua_isnoneornil(L, 3)) {
    KF_CHECK(lua_type(L, 3) == LUA_TNUMBER, Code::script, "nn.norm: eps must be a number, got {}", describe(L, 3));
    config.model.norm_eps = lua_tonumber(L, 3);
  }
  push_module(L, make_part(session.registries.norm, type, config, session.registries, place_of(-1, dim, 0)), call_norm, "norm");
  return 1;
}

int make_mlp_layer(lua_State* L) {
  const Session& session = Session::of(L);
  config::Config config = base_config();
  const std::string activation = check_text(L, 1, "nn.mlp", "an activation");
  const std::int64_t dim = check_size(L, 2, "nn.mlp", "the width of its input");
  const std::int64_t hidden = check_size(L, 3, "nn.mlp", "its inner width");
  config.model.activation = activation;
  const std::string name = config::mlp_name(activation);
  push_module(L, make_part(session.registries.mlp, name, config, session.registries, place_of(-1, dim, hidden)), call_mlp, "mlp");
  return 1;
}

int make_attention_layer(lua_State* L) {
  const Session& session = Session::of(L);
  const Settings settings = read_settings(L, session, "nn.attention");
  const config::Config& config = settings.config;
  const Place place = place_of(settings.layer, config.model.dim, 0);
  push_module(L, make_part(session.registries.attention, config.model.attention, config, session.registries, place), call_attention,
              "attention");
  return 1;
}

int make_moe_layer(lua_State* L) {
  const Session& session = Session::of(L);
  const Settings settings = read_settings(L, session, "nn.moe");
  const config::Config& config = settings.config;
  check_experts(settings, "nn.moe");
  const config::PartOptions none;
  PartArgs args{config, none, session.registries, session.registries.kernels_of(config)};
  args.world = BuildScope::current() != nullptr ? BuildScope::current()->world() : nullptr;
  push_module(L, make_moe(args, place_of(settings.layer, config.model.dim, 0)), call_mlp, "moe");
  return 1;
}

}  // namespace kf::lua
