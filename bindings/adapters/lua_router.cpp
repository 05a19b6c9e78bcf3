#include "bindings/adapters/lua_router.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "bindings/adapters/lua_part.h"
#include "bindings/session/factory.h"
#include "bindings/tensor/tensor.h"
#include "bindings/vm/stack.h"
#include "model/layer/place.h"
#include "model/layer/runs_whole.h"
#include "model/moe/router.h"

namespace kf::lua {
namespace {

class LuaRouter final : public Router, public RunsWhole {
 public:
  LuaRouter(LuaPart part, const config::ModelConfig& model)
      : part_(std::move(part)), experts_(model.num_experts), top_k_(model.moe_top_k), balance_weight_(model.moe_aux_loss_weight) {
    if (part_.module()) {
      add_child("", part_.module());
    }
  }

  Routing route(const at::Tensor& x) const override {
    Routing routing;
    part_.call(x, nullptr, 3, [&](lua_State* L) {
      const int top = lua_gettop(L);
      routing.weights = read_weights(L, top - 2, x.size(0));
      routing.experts = read_experts(L, top - 1, x.size(0));
      if (!lua_isnil(L, top)) {
        read_losses(L, top, routing);
      }
    });
    return routing;
  }

  double balance_weight() const override { return balance_weight_; }

  void rebalance(const at::Tensor& counts, double progress) override {
    const at::NoGradGuard no_grad;
    part_.call_method("rebalance", [&](lua_State* L) {
      push_tensor(L, counts);
      lua_pushnumber(L, progress);
      return 2;
    });
  }

 private:
  /// The tensor (N, k) at `index`, which the messages call `name`.
  const at::Tensor& read_pairs(lua_State* L, int index, std::int64_t tokens, const char* name) const {
    const at::Tensor* tensor = tensor_at(L, index);
    KF_CHECK(tensor != nullptr, Code::script, "{}: forward must return weights, indices [, losses]; {} is {}", part_.where(), name,
             describe(L, index));
    KF_CHECK(tensor->dim() == 2 && tensor->size(0) == tokens && tensor->size(1) == top_k_, Code::script,
             "{}: {} must be ({}, {}) for {} tokens and model.moe_top_k = {}, got {}", part_.where(), name, tokens, top_k_, tokens, top_k_,
             tensor_text(*tensor));
    return *tensor;
  }

  at::Tensor read_weights(lua_State* L, int index, std::int64_t tokens) const {
    const at::Tensor& weights = read_pairs(L, index, tokens, "weights");
    KF_CHECK(weights.is_floating_point(), Code::script, "{}: weights must be floats, got {}", part_.where(), tensor_text(weights));
    return weights.element_size() < 4 ? weights.to(at::kFloat) : weights;  // bf16 would round how experts mix
  }

  at::Tensor read_experts(lua_State* L, int index, std::int64_t tokens) const {
    const at::Tensor& experts = read_pairs(L, index, tokens, "indices");
    KF_CHECK(experts.scalar_type() == at::kLong, Code::script, "{}: indices must be int64, got {}", part_.where(), tensor_text(experts));
    if (experts.is_cpu() && experts.numel() > 0) {  // elsewhere the check would wait for the device, whose kernels look themselves
      const auto [least, most] = at::aminmax(experts);
      KF_CHECK(least.item<std::int64_t>() >= 0 && most.item<std::int64_t>() < experts_, Code::script,
               "{}: indices must be from 0 to {} (model.num_experts - 1), got {} to {}", part_.where(), experts_ - 1,
               least.item<std::int64_t>(), most.item<std::int64_t>());
    }
    return experts;
  }

  /// The table of losses; evaluation has none.
  void read_losses(lua_State* L, int index, Routing& routing) const {
    KF_CHECK(lua_istable(L, index), Code::script, "{}: the third result must be a table of losses or nil, got {}", part_.where(),
             describe_any(L, index));
    for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1)) {
      KF_CHECK(lua_type(L, -2) == LUA_TSTRING, Code::script, "{}: losses have names (balance, z, or any other), got the key {}",
               part_.where(), describe(L, -2));
      const std::string name = lua_tostring(L, -2);
      const at::Tensor* loss = tensor_at(L, -1);
      KF_CHECK(loss != nullptr && loss->dim() == 0 && loss->is_floating_point(), Code::script,
               "{}: the loss '{}' must be a tensor without dims (a sum or a mean), got {}", part_.where(), name, describe_any(L, -1));
      if (training()) {
        at::Tensor& place = name == "balance" ? routing.balance : name == "z" ? routing.z : routing.extra;
        const at::Tensor term = loss->element_size() < 4 ? loss->to(at::kFloat) : *loss;
        place = place.defined() ? place + term : term;
      }
    }
  }

  LuaPart part_;
  std::int64_t experts_;
  std::int64_t top_k_;
  double balance_weight_;
};

}  // namespace

void add_router(lua_State* L, Session& session, config::PartInfo info) {
  const std::string where = part_text("router", info);
  const auto factory = take_factory(L, 2, "router");
  session.registries.router.add(std::move(info), [factory, where](const PartArgs& args, const Place& place) -> std::shared_ptr<Router> {
    const config::ModelConfig& model = args.config.model;
    return std::make_shared<LuaRouter>(call_factory(*factory, where, args, place,
                                                    [&](lua_State* state) {
                                                      set_count(state, "dim", place.dim);
                                                      set_count(state, "num_experts", model.num_experts);
                                                      set_count(state, "top_k", model.moe_top_k);
                                                      set_count(state, "layer", place.layer);
                                                    }),
                                       model);
  });
}

}  // namespace kf::lua
