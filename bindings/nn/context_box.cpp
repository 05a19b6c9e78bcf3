#include "bindings/nn/context_box.h"

#include <ATen/ATen.h>

#include <new>
#include <utility>

#include "bindings/tensor/tensor.h"
#include "bindings/vm/guard.h"
#include "bindings/vm/stack.h"
#include "core/error.h"
#include "model/layer/visibility.h"

namespace kf::lua {
namespace {

constexpr char kMetatable[] = "kf.nn.ctx";

struct ContextBox {
  static constexpr std::uint64_t kMagic = 0x6b66666f72776172ULL;
  std::uint64_t magic = kMagic;
  const ForwardContext* context = nullptr;
  char padding[104] = {};  // a size of its own
};

ContextBox* box_of(lua_State* L, int index) {
  void* place = lua_touserdata(L, index);
  if (place == nullptr || lua_objlen(L, index) != sizeof(ContextBox)) {
    return nullptr;
  }
  auto* box = static_cast<ContextBox*>(place);
  return box->magic == ContextBox::kMagic ? box : nullptr;
}

const Visibility& visible(const ForwardContext& context) {
  KF_CHECK(context.visible != nullptr, Code::script, "this ctx does not say who sees whom");
  return *context.visible;
}

Reach read_reach(lua_State* L, int index) {
  Reach reach;
  if (lua_isnoneornil(L, index)) {
    return reach;
  }
  KF_CHECK(lua_istable(L, index), Code::script, "ctx:mask: expected { window = n } or { chunk = n }, got {}", describe(L, index));
  for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1)) {
    const std::string key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : describe(L, -2);
    KF_CHECK(key == "window" || key == "chunk", Code::script, "ctx:mask: no option '{}'{}", key, suggestion(key, {"window", "chunk"}));
    const auto size = exact_integer(L, -1);
    KF_CHECK(size && *size > 0, Code::script, "ctx:mask: {} must be a whole number above 0, got {}", key, describe(L, -1));
    reach = {key == "window" ? Reach::Kind::local : Reach::Kind::chunk, *size};
  }
  return reach;
}

/// ctx:mask([{ window = n } | { chunk = n }]) -> (B or 1, 1, T, S) bool, true = may attend.
int mask(lua_State* L) {
  const ForwardContext* context = context_at(L, 1, "ctx:mask");
  KF_CHECK(context != nullptr, Code::script, "ctx:mask: call it with a colon");
  const Visibility& who = visible(*context);
  at::Tensor out = who.mask(read_reach(L, 2));
  if (!out.defined()) {
    const at::Tensor positions = who.positions();
    const std::int64_t fresh = positions.size(1);
    const std::int64_t past = context->cache != nullptr ? context->cache->filled : 0;
    out = at::ones({1, 1, fresh, past + fresh}, positions.options().dtype(at::kBool)).tril(past);
  }
  push_tensor(L, out);
  return 1;
}

int index(lua_State* L) {
  const std::string name = check_text(L, 2, "ctx", "a field");
  const ForwardContext* context = context_at(L, 1, "ctx");
  if (name == "positions") {
    push_tensor(L, visible(*context).positions());
  } else if (name == "doc_ids") {
    push_tensor(L, context->doc_ids);
  } else if (name == "step") {
    lua_pushnumber(L, static_cast<double>(context->step));
  } else if (name == "micro") {
    lua_pushnumber(L, static_cast<double>(context->micro));
  } else if (name == "past") {
    lua_pushnumber(L, context->cache != nullptr ? static_cast<double>(context->cache->filled) : 0);
  } else if (name == "mask") {
    lua_pushcfunction(L, &guarded<mask>);
  } else {
    fail(Code::script, "ctx has no field '{}'{}", name, suggestion(name, {"positions", "doc_ids", "step", "micro", "past", "mask"}));
  }
  return 1;
}

thread_local const ForwardContext* under_way = nullptr;

}  // namespace

ForwardUnderWay::ForwardUnderWay(const ForwardContext& context) : before_(std::exchange(under_way, &context)) {}

ForwardUnderWay::~ForwardUnderWay() { under_way = before_; }

const ForwardContext& ForwardUnderWay::now() {
  static const ForwardContext none;
  return under_way != nullptr ? *under_way : none;
}

LentForward::LentForward(lua_State* L, const ForwardContext& context) : under_way_(context) {
  auto* box = new (lua_newuserdata(L, sizeof(ContextBox))) ContextBox();
  box->context = &context;
  slot_ = &box->context;
  if (luaL_newmetatable(L, kMetatable) != 0) {
    lua_pushcfunction(L, &guarded<index>);
    lua_setfield(L, -2, "__index");
    set(L, "__metatable", std::string_view("ctx"));
  }
  lua_setmetatable(L, -2);
}

const ForwardContext* context_at(lua_State* L, int index, const char* function) {
  if (lua_isnoneornil(L, index)) {
    return nullptr;
  }
  const ContextBox* box = box_of(L, index);
  KF_CHECK(box != nullptr, Code::script, "{}: expected the ctx that forward got, got {}", function, describe_any(L, index));
  KF_CHECK(box->context != nullptr, Code::script, "{}: this ctx belongs to a forward that has returned", function);
  return box->context;
}

ForwardContext plain_context(const at::Tensor& x, std::int64_t length) {
  ForwardContext context;
  context.visible = std::make_shared<const Visibility>(0, length, x.device());
  return context;
}

}  // namespace kf::lua
