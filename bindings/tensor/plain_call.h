#pragma once
// The arguments of a call when all are plain values, read from the stack without allocating; their types are a key by which a choice of
// overload is remembered.

#include <ATen/core/Tensor.h>
#include <lua.hpp>

#include <array>
#include <cstdint>
#include <string_view>

namespace kf::lua {

/// A value that says what it is by its type alone.
struct PlainValue {
  enum class Code : std::uint8_t { nil = 1, boolean, integer, real, tensor, integers };
  Code code = Code::nil;
  bool flag = false;
  const at::Tensor* tensor = nullptr;
  std::int64_t integer = 0;
  double number = 0;
};

/// The values of a call, when all are plain: tensors, numbers, booleans, nil, and one short list of integers at most. A last table of
/// keywords adds its values, in the order in which Lua walks it.
struct PlainCall {
  static constexpr int kMost = 6;
  static constexpr int kMostItems = 8;
  static constexpr std::uint32_t kOther = 0;  // the call is not plain

  std::array<PlainValue, kMost> values;
  int count = 0;                                 // by place
  int keywords = 0;                              // behind them
  std::array<std::string_view, kMost> names{};   // of the keywords; they live as long as the table
  std::array<std::int64_t, kMostItems> items{};  // of the list
  int item_count = 0;
  bool edge = false;  // a number among them is 2^63 (see check_int64)

  /// Reads the values from stack index `first` on; their types as a key, or kOther. Throws for tensors that may not be used.
  std::uint32_t read(lua_State* L, int first);

 private:
  bool read_value(lua_State* L, int index, PlainValue& value);
  bool read_keywords(lua_State* L, int index, std::uint32_t& key);
  bool read_items(lua_State* L, int index);
};

}  // namespace kf::lua
