#pragma once
// Every ATen operator, found in LibTorch's dispatcher: kf.op.NAME(...) and t:NAME(...).

#include <lua.hpp>

#include <string>
#include <string_view>
#include <vector>

#include "bindings/tensor/fast_call.h"
#include "bindings/tensor/signature.h"

namespace kf::lua {

/// The overloads that share a name, in the dispatcher's order but for "out" variants, which come last.
struct Operator {
  std::string name;
  std::vector<Signature> overloads;
  bool method = false;      // some overload takes a tensor first
  mutable CallPlans plans;  // filled by calls; one thread has Lua
};

/// The operator `name` ("add"), or one of its overloads alone ("add.Scalar"); null when there is none.
const Operator* find_operator(const std::string& name);
/// All names without overloads, sorted.
const std::vector<std::string>& operator_names();

/// "; did you mean 'softmax'?"
std::string suggestion_of(const std::string& word, const std::vector<std::string>& names);

/// Calls the overload that fits the values from stack index `first` on, and pushes the results. Throws Code::script naming the operator,
/// the argument and what was given.
int call_operator(lua_State* L, const Operator& op, int first);

/// Pushes the function of an operator.
void push_operator(lua_State* L, const Operator& op);

/// Pushes kf.op.
void push_operators(lua_State* L);

/// Pushes what an operator returned. `fresh`: it has memory of its own.
void push_result(lua_State* L, const c10::IValue& value, const ArgumentType& type, bool fresh);

}  // namespace kf::lua
