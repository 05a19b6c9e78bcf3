// + - * / ^ % and - before a tensor; what LuaJIT cannot do is refused with the method that does it.

#include <ATen/ATen.h>

#include <cmath>

#include "bindings/tensor/methods.h"
#include "bindings/tensor/numbers.h"
#include "bindings/tensor/tensor.h"
#include "bindings/vm/guard.h"
#include "bindings/vm/stack.h"
#include "core/error.h"

namespace kf::lua {
namespace {

/// A number as an operand: integral ones are integers, as in PyTorch's Python where 2 is one.
at::Scalar operand(lua_State* L, int index, const char* sign) {
  if (lua_type(L, index) == LUA_TNUMBER) {
    const auto integer = exact_integer(L, index);
    return integer ? at::Scalar(*integer) : at::Scalar(lua_tonumber(L, index));
  }
  if (lua_type(L, index) == LUA_TBOOLEAN) {
    return {lua_toboolean(L, index) != 0};
  }
  if (const auto value = float_at(L, index)) {
    return {*value};
  }
  const auto wide = wide_integer_at(L, index);
  KF_CHECK(wide.has_value(), Code::script, "{}: one side is a tensor, the other is {}; a number or a tensor is wanted", sign,
           describe_any(L, index));
  return {*wide};
}

struct Add {
  static constexpr const char* kSign = "+";
  static at::Tensor of(const at::Tensor& a, const at::Tensor& b) { return at::add(a, b); }
  static at::Tensor of(const at::Tensor& a, const at::Scalar& b) { return at::add(a, b); }
  static at::Tensor of(const at::Scalar& a, const at::Tensor& b) { return at::add(b, a); }
};
struct Subtract {
  static constexpr const char* kSign = "-";
  static at::Tensor of(const at::Tensor& a, const at::Tensor& b) { return at::sub(a, b); }
  static at::Tensor of(const at::Tensor& a, const at::Scalar& b) { return at::sub(a, b); }
  static at::Tensor of(const at::Scalar& a, const at::Tensor& b) { return at::rsub(b, a); }
};
struct Multiply {
  static constexpr const char* kSign = "*";
  static at::Tensor of(const at::Tensor& a, const at::Tensor& b) { return at::mul(a, b); }
  static at::Tensor of(const at::Tensor& a, const at::Scalar& b) { return at::mul(a, b); }
  static at::Tensor of(const at::Scalar& a, const at::Tensor& b) { return at::mul(b, a); }
};
struct Divide {
  static constexpr const char* kSign = "/";
  static at::Tensor of(const at::Tensor& a, const at::Tensor& b) { return at::div(a, b); }
  static at::Tensor of(const at::Tensor& a, const at::Scalar& b) { return at::div(a, b); }
  static at::Tensor of(const at::Scalar& a, const at::Tensor& b) { return at::mul(at::reciprocal(b), a); }  // as torch/_tensor.py
};
struct Power {
  static constexpr const char* kSign = "^";
  static at::Tensor of(const at::Tensor& a, const at::Tensor& b) { return at::pow(a, b); }
  static at::Tensor of(const at::Tensor& a, const at::Scalar& b) { return at::pow(a, b); }
  static at::Tensor of(const at::Scalar& a, const at::Tensor& b) { return at::pow(a, b); }
};
struct Remainder {
  static constexpr const char* kSign = "%";
  static at::Tensor of(const at::Tensor& a, const at::Tensor& b) { return at::remainder(a, b); }
  static at::Tensor of(const at::Tensor& a, const at::Scalar& b) { return at::remainder(a, b); }
  static at::Tensor of(const at::Scalar& a, const at::Tensor& b) { return at::remainder(a, b); }
};

template <class Op>
at::Tensor compute(lua_State* L) {
  const at::Tensor* a = tensor_at(L, 1);
  const at::Tensor* b = tensor_at(L, 2);
  try {
    if (a != nullptr && b != nullptr) {
      return Op::of(*a, *b);
    }
    return a != nullptr ? Op::of(*a, operand(L, 2, Op::kSign)) : Op::of(operand(L, 1, Op::kSign), *b);
  } catch (const c10::Error& error) {
    fail(Code::script, "{}: {}\n  given {}, {}", Op::kSign, error.what_without_backtrace(), describe_any(L, 1), describe_any(L, 2));
  }
}

template <class Op>
int binary(lua_State* L) {
  push_tensor(L, compute<Op>(L), Memory::fresh);
  return 1;
}

int negate(lua_State* L) {
  push_tensor(L, at::neg(check_tensor(L, 1, "-")), Memory::fresh);
  return 1;
}

/// == is identity: the same tensor behind both.
int same(lua_State* L) {
  const TensorBox* a = box_at(L, 1);
  const TensorBox* b = box_at(L, 2);
  lua_pushboolean(L, a != nullptr && b != nullptr && a->tensor.is_same(b->tensor));
  return 1;
}

int length(lua_State* L) {
  const at::Tensor& tensor = check_tensor(L, 1, "#");
  KF_CHECK(tensor.dim() > 0, Code::script, "#: a tensor without dims has no length");
  lua_pushnumber(L, static_cast<double>(tensor.size(0)));
  return 1;
}

int call(lua_State*) {  // `for row in t` and x:T() come here, too
  fail(Code::script, "a tensor is not a function: t[i] is a row, `for i, row in t:iter() do` walks them, t.T and t.shape are fields");
}
int less(lua_State*) { fail(Code::script, "'<' and '>' give one boolean in Lua; write a:lt(b) or a:gt(b)"); }
int less_or_equal(lua_State*) { fail(Code::script, "'<=' and '>=' give one boolean in Lua; write a:le(b) or a:ge(b)"); }
int concatenate(lua_State*) { fail(Code::script, "'..' joins strings; write tostring(t), or kf.op.cat({ a, b }, dim) for tensors"); }

}  // namespace

void add_arithmetic(lua_State* L) {
  const luaL_Reg functions[] = {{"__add", &guarded<binary<Add>>},
                                {"__sub", &guarded<binary<Subtract>>},
                                {"__mul", &guarded<binary<Multiply>>},
                                {"__div", &guarded<binary<Divide>>},
                                {"__pow", &guarded<binary<Power>>},
                                {"__mod", &guarded<binary<Remainder>>},
                                {"__unm", &guarded<negate>},
                                {"__eq", same},
                                {"__len", &guarded<length>},
                                {"__call", &guarded<call>},
                                {"__lt", &guarded<less>},
                                {"__le", &guarded<less_or_equal>},
                                {"__concat", &guarded<concatenate>},
                                {nullptr, nullptr}};
  luaL_register(L, nullptr, functions);
}

}  // namespace kf::lua
