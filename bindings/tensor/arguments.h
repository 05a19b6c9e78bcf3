#pragma once
// The values of one call as Lua gave them, looked at once; then fitted to the parameters of each overload, and converted for the chosen
// one.

#include <ATen/core/ivalue.h>
#include <lua.hpp>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "bindings/tensor/signature.h"

namespace kf::lua {

/// One value on the Lua stack.
struct Value {
  enum class Type : std::uint8_t { nil, boolean, integer, real, text, tensor, generator, list, other };
  Type type = Type::nil;
  Type item = Type::nil;  // of a list: what all its items are; nil for an empty one, other for a mixture
  bool gaps = false;      // of a list of tensors: some items are false, which stands for no tensor
  int index = 0;          // stack index
  int length = 0;         // of a list
};

struct Keyword {
  const char* name = nullptr;
  Value value;
};

/// The arguments of a call: by place, and from a last table with string keys.
struct CallArguments {
  std::vector<Value> places;
  std::vector<Keyword> keywords;

  /// Reads all values from stack index `first` on. Keyword values are left on the stack above them.
  void read(lua_State* L, int first);
};

/// Which value each parameter gets.
struct Fit {
  static constexpr std::int16_t kDefault = -1;
  static constexpr std::int16_t kKeyword = 1000;  // + index of the keyword
  static constexpr std::int16_t kOutItem = 2000;  // + index in the list of the keyword `out`
  std::vector<std::int16_t> source;               // by parameter: index of the value by place, kKeyword + i, kOutItem + i, kDefault
  int spread_from = -1;                           // values by place from here on are one list, of the parameter Signature::first_list
  int cost = -1;                                  // the lower the better; -1: it does not fit
};

/// How well the values fit; `why`, if given, gets the reason why not: "'dim' must be an int, got 'x'".
void fit(lua_State* L, const Signature& signature, const CallArguments& call, Fit& out, std::string* why = nullptr);

/// The values in the order of the schema, appended to `stack`.
void convert(lua_State* L, const Signature& signature, const CallArguments& call, const Fit& fit, std::vector<c10::IValue>& stack);

Value value_at(lua_State* L, int index);

/// Whether the table at `index` (not negative), whose length is given, has names beside its items. Then one of them is left on the stack.
bool has_names(lua_State* L, int index, int length);

}  // namespace kf::lua
