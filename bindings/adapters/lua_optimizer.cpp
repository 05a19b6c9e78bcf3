#include "bindings/adapters/lua_optimizer.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>

#include "bindings/adapters/kept_state.h"
#include "bindings/session/factory.h"
#include "bindings/tensor/tensor.h"
#include "bindings/vm/stack.h"
#include "core/text.h"
#include "optim/optimizer.h"
#include "optim/slots.h"

namespace kf::lua {
namespace {

void push_list(lua_State* L, const std::vector<at::Tensor>& tensors, const std::shared_ptr<Lease>& lease) {
  lua_createtable(L, static_cast<int>(tensors.size()), 0);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    push_lent(L, tensors[i], lease);
    lua_rawseti(L, -2, static_cast<int>(i + 1));
  }
}

/// Of the parameters that have a gradient, as in `lists_of`.
void push_names(lua_State* L, const ParameterList& parameters) {
  lua_newtable(L);
  int number = 0;
  for (const ParameterPtr& parameter : parameters) {
    if (parameter->gradient().defined()) {
      push(L, std::string_view(parameter->name));
      lua_rawseti(L, -2, ++number);
    }
  }
}

/// What the table of an optimizer says.
struct OptimizerTable {
  std::vector<std::string> names;    // of its tensors
  std::int64_t curvature_every = 0;  // updates; 0: never
};

class LuaOptimizer final : public Optimizer {
 public:
  LuaOptimizer(std::string where, OptimizerTable table, Ref step, PartStates::Handle kept, std::vector<ParamGroup> groups)
      : where_(std::move(where)),
        names_(std::move(table.names)),
        step_(std::move(step)),
        kept_(std::move(kept)),
        groups_(std::move(groups)),
        slots_(kinds_of(names_)),
        curvature_every_(table.curvature_every) {}

  void step(double lr) override {
    const at::NoGradGuard no_grad;
    ++updates_;
    for (const ParamGroup& group : groups_) {
      TensorLists lists = lists_of(group, slots_);
      if (!lists.masters.empty()) {
        step_group(group, lists, lr);
        lists.write_back();
      }
    }
    curvature_.clear();
  }

  bool wants_curvature() const override { return curvature_every_ > 0 && updates_ % curvature_every_ == 0; }
  void take_curvature(const Curvature& curvature) override { curvature_ = curvature; }

  OptimizerState state() const override {
    OptimizerState state;
    slots_.save(state);
    state.integers["step"] = updates_;
    return state;
  }

  void load(const OptimizerState& state) override {
    const auto step = state.integers.find("step");
    KF_CHECK(step != state.integers.end(), Code::checkpoint, "the optimizer state lacks 'step': it is not of {}", where_);
    updates_ = step->second;
    if (!names_.empty()) {
      slots_.load(state, groups_);
    }
  }

 private:
  static std::vector<Slots::Kind> kinds_of(const std::vector<std::string>& names) {
    std::vector<Slots::Kind> kinds;
    for (const std::string& name : names) {
      kinds.push_back({name, Slots::Start::zeros});
    }
    return kinds;
  }

  void step_group(const ParamGroup& group, const TensorLists& lists, double lr) {
    Runtime& runtime = step_.runtime();
    lua_State* L = runtime.state();
    KF_CHECK(lua_checkstack(L, 12) != 0, Code::script, "Lua: stack overflow");
    const StackTop top(L);
    const LeaseScope lease(format("the parameters, gradients and states of update {}", updates_));
    lua_createtable(L, 0, 8);
    const int g = lua_gettop(L);
    push_list(L, lists.masters, lease.lease());
    lua_setfield(L, -2, "params");
    push_list(L, lists.gradients, lease.lease());
    lua_setfield(L, -2, "grads");
    push_names(L, group.parameters);
    lua_setfield(L, -2, "names");
    lua_createtable(L, 0, static_cast<int>(names_.size()));
    for (std::size_t i = 0; i < names_.size(); ++i) {
      push_list(L, lists.slots[i], lease.lease());
      lua_setfield(L, -2, names_[i].c_str());
    }
    lua_setfield(L, -2, "state");
    if (!curvature_.empty()) {
      push_list(L, curvature_of(lists), lease.lease());
      lua_setfield(L, -2, "curvature");
    }
    set(L, "lr", lr);
    set(L, "weight_decay", group.weight_decay);
    set(L, "step", static_cast<double>(updates_));
    step_.push(L);
    lua_pushvalue(L, g);
    try {
      runtime.call(1, 0);
      check_kept(L, g, lists);
    } catch (const Error& error) {
      rethrow_from(error, where_, format("in {}, update {}", where_, updates_));
    }
  }

  /// In the order of the parameters; zeros where nothing bends the loss.
  std::vector<at::Tensor> curvature_of(const TensorLists& lists) const {
    std::vector<at::Tensor> out;
    for (std::size_t i = 0; i < lists.parameters.size(); ++i) {
      const auto found = curvature_.find(lists.parameters[i]->name);
      out.push_back(found != curvature_.end() ? found->second : at::zeros_like(lists.gradients[i]));
    }
    return out;
  }

  /// Another tensor in the place of a parameter or a state would be lost: they are changed in place.
  void check_kept(lua_State* L, int g, const TensorLists& lists) const {
    push(L, std::string_view("params"));
    lua_rawget(L, g);
    check_list(L, "g.params", lists.masters);
    push(L, std::string_view("state"));
    lua_rawget(L, g);
    for (std::size_t i = 0; i < names_.size() && lua_istable(L, -1); ++i) {
      push(L, std::string_view(names_[i]));
      lua_rawget(L, -2);
      check_list(L, "g.state." + names_[i], lists.slots[i]);
    }
  }

  /// Pops the list on top.
  void check_list(lua_State* L, const std::string& name, const std::vector<at::Tensor>& tensors) const {
    for (std::size_t i = 0; i < tensors.size() && lua_istable(L, -1); ++i) {
      lua_rawgeti(L, -1, static_cast<int>(i + 1));
      const TensorBox* const box = box_at(L, -1);
      KF_CHECK(box == nullptr || box->tensor.is_same(tensors[i]), Code::script,
               "{}: {}[{}] was replaced, which changes nothing; write into it: {}[{}]:copy_(t), :add_(t), :mul_(x)", where_, name, i + 1,
               name, i + 1);
      lua_pop(L, 1);
    }
    lua_pop(L, 1);
  }

  std::string where_;
  std::vector<std::string> names_;
  Ref step_;
  PartStates::Handle kept_;
  std::vector<ParamGroup> groups_;
  Slots slots_;
  std::int64_t updates_ = 0;
  std::int64_t curvature_every_;
  Curvature curvature_;  // for the update that comes; empty where it was not asked for, or not finite
};

bool is_table(lua_State* L, int index) { return lua_istable(L, index); }

/// The strings of t[key], which may be left out; the table is on top.
std::vector<std::string> tensor_names(lua_State* L, const char* key, const std::string& where) {
  std::vector<std::string> names;
  lua_getfield(L, -1, key);
  if (!lua_isnil(L, -1)) {
    KF_CHECK(lua_istable(L, -1), Code::script, "{}: {} must be a list of names, got {}", where, key, describe(L, -1));
    const int count = static_cast<int>(lua_objlen(L, -1));
    for (int i = 1; i <= count; ++i) {
      lua_rawgeti(L, -1, i);
      names.push_back(check_text(L, -1, format("{}: {}", where, key), "names"));
      KF_CHECK(std::count(names.begin(), names.end(), names.back()) == 1, Code::script, "{}: the state '{}' is named twice", where,
               names.back());
      lua_pop(L, 1);
    }
  }
  lua_pop(L, 1);
  return names;
}

std::unique_ptr<Optimizer> make_optimizer(const Ref& table, const std::string& where, std::vector<ParamGroup> groups) {
  std::unique_ptr<Optimizer> out;
  table.runtime().protect([&](lua_State* L) {
    table.push(L);
    for (lua_pushnil(L); lua_next(L, 1) != 0; lua_pop(L, 1)) {
      const std::string key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : describe(L, -2);
      const std::vector<std::string> known = {"state", "step", "load", "tensors", "curvature_every"};
      KF_CHECK(std::find(known.begin(), known.end(), key) != known.end(), Code::script, "{}: no key '{}'{}", where, key,
               suggestion(key, known));
    }
    // `state` names tensors like the parameters; as a function it keeps plain values, and `tensors` names the tensors.
    lua_getfield(L, 1, "state");
    const bool plain = is_callable(L, -1);
    lua_getfield(L, 1, "load");
    KF_CHECK(plain || lua_isnil(L, -1), Code::script,
             "{}: load belongs to a state that is a function: {{ tensors = {{ names }}, state = function() ... end, load = ... }}", where);
    lua_getfield(L, 1, "tensors");
    KF_CHECK(plain || lua_isnil(L, -1), Code::script,
             "{}: tensors = {{ names }} stands beside a state that is a function; write state = "
             "{{ names }}",
             where);
    lua_settop(L, 1);
    OptimizerTable said;
    said.names = tensor_names(L, plain ? "tensors" : "state", where);
    lua_getfield(L, 1, "curvature_every");
    if (!lua_isnil(L, -1)) {
      const double every = lua_isnumber(L, -1) ? lua_tonumber(L, -1) : 0;
      KF_CHECK(lua_type(L, -1) == LUA_TNUMBER && every >= 1 && every <= 1e15 && std::floor(every) == every, Code::script,
               "{}: curvature_every must be a whole number of updates, at least 1, got {}", where, describe(L, -1));
      said.curvature_every = static_cast<std::int64_t>(every);
    }
    lua_settop(L, 1);
    PartStates::Handle kept = plain ? keep_state_of(L, 1, where) : nullptr;
    lua_getfield(L, 1, "step");
    KF_CHECK(is_callable(L, -1), Code::script, "{}: step must be a function, got {}", where, describe(L, -1));
    out = std::make_unique<LuaOptimizer>(where, std::move(said), Ref(L), std::move(kept), std::move(groups));
  });
  return out;
}

}  // namespace

void add_optimizer(lua_State* L, Session& session, config::PartInfo info) {
  const std::string where = part_text("optimizer", info);
  const auto factory = take_factory(L, 2, "optimizer");
  session.registries.optimizer.add(std::move(info), [factory, where](const PartArgs& args, std::vector<ParamGroup> groups) {
    return make_optimizer(build(*factory, where, args, {}, "a table { state = { names }, step = function(g) ... end }", is_table), where,
                          std::move(groups));
  });
}

}  // namespace kf::lua
