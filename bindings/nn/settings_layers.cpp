#include "bindings/nn/settings_layers.h"

#include <ATen/ATen.h>

#include "bindings/nn/build_scope.h"
#include "bindings/nn/context_box.h"
#include "bindings/nn/layer_options.h"
#include "bindings/nn/module_box.h"
#include "bindings/session.h"
#include "bindings/stack.h"
#include "bindings/tensor/tensor.h"
#include "bindings/values.h"
#include "config/convert.h"
#include "config/derived.h"
#include "config/schema.h"
#include "core/error.h"
#include "model/attention.h"
#include "model/mlp.h"
#include "model/norm.h"
#include "model/rope.h"

namespace kf::lua {
namespace {

/// The settings that a factory builds for, else the defaults.
config::Config base_config() { return BuildScope::current() != nullptr ? BuildScope::current()->config() : config::Config(); }

/// The place of a layer that nobody placed: shares its rotary tables with the others of its model.
Place place_of(std::int64_t layer, std::int64_t dim, std::int64_t hidden) {
  Place place = BuildScope::current() != nullptr ? BuildScope::current()->place() : Place{};
  place.layer = layer >= 0 ? layer : std::max<std::int64_t>(place.layer, 0);
  place.dim = dim;
  place.hidden = hidden;
  if (!place.ropes) {
    place.ropes = std::make_shared<RopeTables>();
  }
  return place;
}

/// config.model.<row> = the value on top, in the row's type and bounds.
void set_row(lua_State* L, const Session& session, config::Config& out, const config::Row& row) {
  const config::Catalog catalog = session.registries.catalog();
  config::Report report;
  config::Converter converter(catalog, report);
  const auto node = converter.convert(read_value(L, lua_gettop(L), {"nn.attention: " + row.name, {}}), row, row.name);
  if (!node || !report.problems.empty()) {
    fail(Code::script, "nn.attention: {}", report.problems.empty() ? "'" + row.name + "' does not fit" : report.problems.front().message);
  }
  row.set(out, *node);
}

/// The [model] keys of the table at `index` (`layer` left out), into `out`. A view of the settings gives all of them.
void apply_keys(lua_State* L, int index, const Session& session, config::Config& out) {
  if (lua_isnoneornil(L, index)) {
    return;
  }
  if (lua_istable(L, index)) {
    for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1)) {
      const std::string key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : describe(L, -2);
      if (key == "layer") {
        continue;
      }
      const config::Row* row = config::find_row("model." + key);
      std::vector<std::string> names = {"layer"};
      for (const config::Row& known : config::rows()) {
        if (known.section == "model") {
          names.push_back(known.name);
        }
      }
      KF_CHECK(row != nullptr, Code::script, "nn.attention: [model] has no key '{}'{}", key, suggestion(key, names));
      set_row(L, session, out, *row);
    }
    return;
  }
  KF_CHECK(lua_isuserdata(L, index) && tensor_at(L, index) == nullptr, Code::script,
           "nn.attention: expected a.config.model or a table of [model] keys, got {}", describe_any(L, index));
  for (const config::Row& row : config::rows()) {
    if (row.section == "model") {
      lua_getfield(L, index, row.name.c_str());
      if (!lua_isnil(L, -1)) {
        set_row(L, session, out, row);
      }
      lua_pop(L, 1);
    }
  }
}

/// Whether the view at `index` is of the very settings that this factory builds for.
bool is_own_model(lua_State* L, int index) { return BuildScope::current() != nullptr && lua_isuserdata(L, index); }

template <class Part>
int call_part(lua_State* L, Module& module) {
  push_tensor(L, static_cast<Part&>(module).forward(check_tensor(L, 2, "the input of a layer")), Memory::fresh);
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
  const PartArgs args{config, Registries::options_of(config, "norm", type), session.registries};
  push_module(L, session.registries.norm.get(type).factory(args, place_of(-1, dim, 0)), call_part<Norm>, "norm");
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
  const PartArgs args{config, Registries::options_of(config, "mlp", name), session.registries};
  push_module(L, session.registries.mlp.get(name).factory(args, place_of(-1, dim, hidden)), call_part<Mlp>, "mlp");
  return 1;
}

int make_attention_layer(lua_State* L) {
  const Session& session = Session::of(L);
  config::Config config = base_config();
  if (!is_own_model(L, 1)) {
    apply_keys(L, 1, session, config);
  }
  apply_keys(L, 2, session, config);
  std::int64_t layer = -1;
  if (lua_istable(L, 2)) {
    lua_getfield(L, 2, "layer");
    const auto given = exact_integer(L, -1);
    KF_CHECK(lua_isnil(L, -1) || (given && *given >= 0), Code::script, "nn.attention: layer must be a whole number from 0 on, got {}",
             describe(L, -1));
    layer = given.value_or(-1);
    lua_pop(L, 1);
  }
  const std::string& name = config.model.attention;
  const PartArgs args{config, Registries::options_of(config, "attention", name), session.registries};
  push_module(L, session.registries.attention.get(name).factory(args, place_of(layer, config.model.dim, 0)), call_attention, "attention");
  return 1;
}

}  // namespace kf::lua
