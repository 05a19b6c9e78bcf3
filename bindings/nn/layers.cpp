#include "bindings/nn/layers.h"

#include <ATen/ATen.h>

#include <memory>

#include "bindings/nn/build_scope.h"
#include "bindings/nn/context_box.h"
#include "bindings/nn/layer_options.h"
#include "bindings/nn/lua_module.h"
#include "bindings/nn/module_box.h"
#include "bindings/nn/module_hooks.h"
#include "bindings/nn/recompute_call.h"
#include "bindings/nn/settings_layers.h"
#include "bindings/tensor/tensor.h"
#include "bindings/vm/guard.h"
#include "bindings/vm/stack.h"
#include "core/error.h"
#include "model/layer/dropout.h"
#include "model/layer/linear.h"
#include "model/layer/norm.h"
#include "model/layer/rope.h"
#include "model/observe.h"

namespace kf::lua {
namespace {

template <class Layer>
int call_unary(lua_State* L, Module& module) {
  push_tensor(L, static_cast<Layer&>(module).forward(check_tensor(L, 2, "the input of a layer")), Memory::fresh);
  return 1;
}

void take_hint(Parameter& parameter, std::optional<Split> split) {
  parameter.split = split.value_or(Split::replicate);
  parameter.split_hint = split.has_value();
}

/// nn.linear(in, out [, { bias = false, init = "normal", role = "hidden", shard = "colwise" }])
int linear(lua_State* L) {
  const std::int64_t in = check_size(L, 1, "nn.linear", "the width of its input");
  const std::int64_t out = check_size(L, 2, "nn.linear", "the width of its output");
  const LayerOptions options(L, 3, "nn.linear", {"bias", "init", "role", "shard"});
  auto layer = std::make_shared<Linear>(in, out, options.init("normal", in), options.role(Role::hidden), options.flag("bias", false));
  if (const std::optional<Split> split = options.shard(2)) {
    layer->split(*split);
    for (const auto& [name, parameter] : layer->own_parameters()) {
      parameter->split_hint = true;
    }
  }
  push_module(L, std::move(layer), call_unary<Linear>, "linear");
  return 1;
}

/// A table of vectors: ids (..) int64 -> (.., C).
class Embedding final : public ScriptLayer {
 public:
  Embedding(std::int64_t rows, std::int64_t dim, Init init, Role role)
      : weight_(add_parameter("weight", {rows, dim}, std::move(init), role)) {}
  at::Tensor forward(const at::Tensor& ids) const { return observed(*this, ids, at::embedding(weight_->value, ids)); }

 private:
  ParameterPtr weight_;
};

/// nn.embedding(rows, dim [, { init = "embedding", role = "embedding", shard = "colwise" }])
int embedding(lua_State* L) {
  const std::int64_t rows = check_size(L, 1, "nn.embedding", "the number of rows");
  const std::int64_t dim = check_size(L, 2, "nn.embedding", "their width");
  const LayerOptions options(L, 3, "nn.embedding", {"init", "role", "shard"});
  auto layer = std::make_shared<Embedding>(rows, dim, options.init("embedding", dim), options.role(Role::embedding));
  take_hint(*layer->own_parameters().front().second, options.shard(2));
  push_module(L, std::move(layer), call_unary<Embedding>, "embedding");
  return 1;
}

/// The options of both norms: a number is eps.
NormOptions norm_options_at(lua_State* L, int index, const char* where, std::optional<Split>& shard) {
  NormOptions out;
  out.eps = current_model().norm_eps;
  if (lua_type(L, index) == LUA_TNUMBER) {
    out.eps = lua_tonumber(L, index);
    return out;
  }
  const LayerOptions options(L, index, where, {"eps", "weight", "bias", "unit_offset", "shard"});
  shard = options.shard(1);
  out.eps = options.number("eps", out.eps);
  out.weight = options.flag("weight", true);
  out.bias = options.flag("bias", true);
  out.unit_offset = options.flag("unit_offset", false);
  return out;
}

void push_norm(lua_State* L, const std::shared_ptr<Norm>& norm, std::optional<Split> shard, const char* kind) {
  for (const auto& [name, parameter] : norm->own_parameters()) {
    take_hint(*parameter, shard);
  }
  push_module(L, norm, call_unary<Norm>, kind);
}

/// nn.rmsnorm(dim [, eps | { eps, weight, unit_offset, shard }])
int rmsnorm(lua_State* L) {
  const std::int64_t dim = check_size(L, 1, "nn.rmsnorm", "the width of its input");
  std::optional<Split> shard;
  push_norm(L, std::make_shared<RmsNorm>(dim, norm_options_at(L, 2, "nn.rmsnorm", shard)), shard, "rmsnorm");
  return 1;
}

/// nn.layernorm(dim [, eps | { eps, weight, bias, shard }])
int layernorm(lua_State* L) {
  const std::int64_t dim = check_size(L, 1, "nn.layernorm", "the width of its input");
  std::optional<Split> shard;
  push_norm(L, std::make_shared<LayerNorm>(dim, norm_options_at(L, 2, "nn.layernorm", shard)), shard, "layernorm");
  return 1;
}

class DropoutLayer final : public ScriptLayer {
 public:
  DropoutLayer(double rate, std::int64_t seed, std::int64_t layer, const std::string& place) : dropout_(rate, seed, layer, place) {}
  at::Tensor forward(const at::Tensor& x, const ForwardContext& context) const {
    return observed(*this, x, dropout_.apply(x, context, training()));
  }

 private:
  Dropout dropout_;
};

/// drop(x [, ctx]): without ctx every call of a step drops the same values.
int call_dropout(lua_State* L, Module& module) {
  const ForwardContext* context = context_at(L, 3, "nn.dropout");
  const at::Tensor& x = check_tensor(L, 2, "nn.dropout");
  push_tensor(L, static_cast<DropoutLayer&>(module).forward(x, context != nullptr ? *context : ForwardContext{}), Memory::fresh);
  return 1;
}

/// nn.dropout(rate)
int dropout(lua_State* L) {
  const double rate = lua_tonumber(L, 1);
  KF_CHECK(lua_type(L, 1) == LUA_TNUMBER && rate >= 0 && rate < 1, Code::script, "nn.dropout: expected a rate from 0 to below 1, got {}",
           describe(L, 1));
  const BuildScope* scope = BuildScope::current();
  const std::int64_t number = scope != nullptr ? scope->next_number() : 0;
  push_module(L,
              std::make_shared<DropoutLayer>(rate, scope != nullptr ? scope->config().train.seed : 0,
                                             scope != nullptr ? scope->place().layer : -1, "lua." + std::to_string(number)),
              call_dropout, "dropout");
  return 1;
}

class RopeLayer final : public ScriptLayer {
 public:
  explicit RopeLayer(const RopeOptions& options) : rope_(options) {}
  at::Tensor forward(const at::Tensor& x, std::int64_t first) const { return observed(*this, x, rope_.rotate(x, first)); }

 private:
  Rope rope_;
};

/// rope(x [, first]): x (B, H, T, D) at positions first, first + 1, ...; first may be the ctx of forward.
int call_rope(lua_State* L, Module& module) {
  std::int64_t first = 0;
  if (const auto number = exact_integer(L, 3)) {
    first = *number;
  } else if (const ForwardContext* context = context_at(L, 3, "nn.rope")) {
    first = context->cache != nullptr ? context->cache->filled : 0;
  }
  push_tensor(L, static_cast<RopeLayer&>(module).forward(check_tensor(L, 2, "nn.rope"), first), Memory::fresh);
  return 1;
}

/// nn.rope(head_dim [, { theta, max_seq_len, fraction, interleaved }])
int rope(lua_State* L) {
  const config::ModelConfig& model = current_model();
  RopeOptions out;
  out.head_dim = check_size(L, 1, "nn.rope", "the width of a head");
  const LayerOptions options(L, 2, "nn.rope", {"theta", "max_seq_len", "fraction", "interleaved"});
  out.max_seq_len = options.integer("max_seq_len", model.max_seq_len);
  out.theta = options.number("theta", model.rope_theta);
  out.fraction = options.number("fraction", 1);
  out.interleaved = options.flag("interleaved", false);
  KF_CHECK(out.head_dim % 2 == 0, Code::script, "nn.rope: the width of a head must be even, got {}", out.head_dim);
  push_module(L, std::make_shared<RopeLayer>(out), call_rope, "rope");
  return 1;
}

/// The sizes in a list at 1, or spread over the first arguments; `next` becomes the index behind them.
std::vector<std::int64_t> sizes_at(lua_State* L, const char* where, int& next) {
  std::vector<std::int64_t> sizes;
  if (lua_istable(L, 1)) {
    for (int i = 1; i <= static_cast<int>(lua_objlen(L, 1)); ++i) {
      lua_rawgeti(L, 1, i);
      sizes.push_back(check_size(L, lua_gettop(L), where, "a size"));
      lua_pop(L, 1);
    }
    next = 2;
  } else {
    for (next = 1; lua_type(L, next) == LUA_TNUMBER; ++next) {
      sizes.push_back(check_size(L, next, where, "a size"));
    }
  }
  KF_CHECK(!sizes.empty(), Code::script, "{}: expected its sizes, got {}", where, describe_any(L, 1));
  return sizes;
}

/// nn.parameter({ sizes } [, { init = "normal", role = "hidden", shard = "colwise" }]), nn.parameter(tensor [, { role, shard }])
int parameter(lua_State* L) {
  auto out = std::make_shared<Parameter>();
  if (const at::Tensor* tensor = tensor_at(L, 1)) {
    const LayerOptions options(L, 2, "nn.parameter", {"role", "shard"});
    out->shape = tensor->sizes().vec();
    out->init = Init::given(tensor->detach().clone());
    out->role = options.role(tensor->dim() > 1 ? Role::hidden : Role::vector);
    take_hint(*out, options.shard(tensor->dim()));
  } else {
    int next = 2;
    out->shape = sizes_at(L, "nn.parameter", next);
    const LayerOptions options(L, next, "nn.parameter", {"init", "role", "shard"});
    out->init = options.init(out->shape.size() > 1 ? "normal" : "ones", out->shape.back());
    out->role = options.role(out->shape.size() > 1 ? Role::hidden : Role::vector);
    take_hint(*out, options.shard(static_cast<std::int64_t>(out->shape.size())));
    KF_CHECK(out->init.kind != Init::Kind::given || out->init.values.sizes() == at::IntArrayRef(out->shape), Code::script,
             "nn.parameter: init is a tensor {}, which does not fit", tensor_text(out->init.values));
  }
  push_parameter(L, std::move(out));
  return 1;
}

/// nn.buffer(tensor): saved with the model, moved by nobody but the module itself.
int buffer(lua_State* L) {
  auto out = std::make_shared<Parameter>();
  KF_CHECK(box_at(L, 1) != nullptr, Code::script, "nn.buffer: expected its first value, a tensor such as kf.zeros({ 4 }), got {}",
           describe(L, 1));
  const at::Tensor& tensor = check_tensor(L, 1, "nn.buffer");
  out->shape = tensor.sizes().vec();
  out->init = Init::given(tensor.detach().clone());
  out->role = Role::vector;
  out->trainable = false;
  push_parameter(L, std::move(out));
  return 1;
}

int is_module(lua_State* L) {
  lua_pushboolean(L, module_at(L, 1) != nullptr);
  return 1;
}

}  // namespace

void push_layers(lua_State* L) {
  add_module_methods(L);
  lua_setfield(L, LUA_REGISTRYINDEX, "kf.nn.metatable");
  lua_newtable(L);
  const luaL_Reg functions[] = {{"module", &guarded<make_module>},
                                {"linear", &guarded<linear>},
                                {"embedding", &guarded<embedding>},
                                {"rmsnorm", &guarded<rmsnorm>},
                                {"layernorm", &guarded<layernorm>},
                                {"norm", &guarded<make_norm_layer>},
                                {"attention", &guarded<make_attention_layer>},
                                {"mlp", &guarded<make_mlp_layer>},
                                {"moe", &guarded<make_moe_layer>},
                                {"dropout", &guarded<dropout>},
                                {"rope", &guarded<rope>},
                                {"parameter", &guarded<parameter>},
                                {"buffer", &guarded<buffer>},
                                {"is_module", &guarded<is_module>},
                                {"recompute", &guarded<recompute_call>},
                                {"is_observed", is_observed},
                                {"observe", &guarded<observe>},
                                {nullptr, nullptr}};
  luaL_register(L, nullptr, functions);
  lua_getfield(L, LUA_REGISTRYINDEX, "kf.nn.metatable");
  lua_setfield(L, -2, "metatable");
}

}  // namespace kf::lua
