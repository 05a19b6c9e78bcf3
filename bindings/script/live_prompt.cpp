#include "bindings/script/live_prompt.h"

#include <ATen/core/Tensor.h>

#include "attach/frame.h"
#include "bindings/context/hook_context.h"
#include "bindings/nn/module_hooks.h"
#include "bindings/session/session.h"
#include "bindings/vm/cancellation.h"
#include "bindings/vm/output.h"
#include "bindings/vm/runtime.h"
#include "bindings/vm/stack.h"
#include "core/error.h"

namespace kf {
namespace {

/// Rises with every write into a weight of the model.
std::uint64_t writes_into(Model* model) {
  std::uint64_t sum = 0;
  if (model != nullptr) {
    for (const ParameterPtr& weight : model->parameters()) {
      const at::Tensor kept = weight->kept();
      sum += kept.defined() ? static_cast<std::uint64_t>(kept._version()) : 0;
    }
  }
  return sum;
}

}  // namespace

LivePrompt::LivePrompt(Script& script) : script_(script) {}

LivePrompt::~LivePrompt() {
  for (const auto& hooks : module_hooks_) {
    hooks->remove();
  }
}

/// require("kf.prompt").live(ctx)
void LivePrompt::begin() {
  script_.runtime().protect([&](lua_State* L) {
    lua_getglobal(L, "require");
    lua_pushliteral(L, "kf.prompt");
    lua_call(L, 1, 1);
    lua_getfield(L, -1, "live");
    lua::Session::of(L).context.userdata.push(L);
    lua_call(L, 1, 3);
    touched_ = std::make_unique<lua::Ref>(L);
    show_ = std::make_unique<lua::Ref>(L);
    compile_ = std::make_unique<lua::Ref>(L);
  });
}

Outcome LivePrompt::run(const std::string& chunk, HookContext& context, const std::function<bool()>& cancelled) {
  Outcome out;
  lua::Runtime& runtime = script_.runtime();
  lua::TakenOutput printed(attach::kMostText - 100);
  const std::uint64_t writes = writes_into(context.model);
  const std::size_t hooks = module_hooks_.size();
  try {
    if (!compile_) {
      begin();
    }
    const lua::LentContext lent(*lua::Session::of(runtime.state()).context.slot, context, Event::step_end, &module_hooks_);
    try {
      const lua::Cancellation cancellation(runtime.state(), cancelled, "who asked has gone away");
      runtime.protect([&](lua_State* L) {
        const int base = lua_gettop(L);
        compile_->push(L);
        lua::push(L, std::string_view(chunk));
        lua_call(L, 1, 2);
        KF_CHECK(!lua_isnil(L, -2), Code::script, "{}", lua_tostring(L, -1));
        lua_pop(L, 1);
        lua_call(L, 0, LUA_MULTRET);
        const int values = lua_gettop(L) - base;
        show_->push(L);
        lua_insert(L, base + 1);
        lua_call(L, values, 1);
        printed.add(lua::text_at(L, -1));
      });
    } catch (const Error& e) {
      out.error = e.what();
      out.code = e.code();
    }
    out.changed = writes_into(context.model) != writes || module_hooks_.size() != hooks;  // before what was lent goes back
    runtime.protect([&](lua_State* L) {
      touched_->push(L);
      lua_call(L, 0, 1);
      out.changed = lua_toboolean(L, -1) != 0 || out.changed;
    });
  } catch (const Error& e) {
    out.error = out.error.empty() ? e.what() : out.error;
  }
  out.output = printed.text();
  return out;
}

}  // namespace kf
