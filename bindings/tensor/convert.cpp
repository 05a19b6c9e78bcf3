// Between tensors and Lua's own values: kf.tensor, t:tolist(), t:item(), t:data_ptr().

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>

#include <cmath>
#include <vector>

#include "bindings/tensor/methods.h"
#include "bindings/tensor/names.h"
#include "bindings/tensor/numbers.h"
#include "bindings/tensor/options.h"
#include "bindings/tensor/tensor.h"
#include "bindings/vm/guard.h"
#include "bindings/vm/runtime.h"
#include "bindings/vm/stack.h"
#include "core/error.h"

namespace kf::lua {
namespace {

constexpr int kMaxDepth = 32;

/// The numbers of nested tables, row by row.
class Reader {
 public:
  Reader(lua_State* L, at::ScalarType type) : L_(L), type_(type) {}

  void read(int index, std::size_t depth) {
    if (!lua_istable(L_, index)) {
      KF_CHECK(depth == sizes_.size() || sizes_closed_ == false, Code::script, "kf.tensor: {} stands where a list of {} is wanted{}",
               describe(L_, index), sizes_[depth], place());
      sizes_closed_ = true;
      take(index);
      return;
    }
    const auto length = static_cast<std::int64_t>(lua_objlen(L_, index));
    if (!sizes_closed_ && depth == sizes_.size()) {
      KF_CHECK(depth < kMaxDepth, Code::script, "kf.tensor: nested deeper than {} lists", kMaxDepth);
      sizes_.push_back(length);
    }
    KF_CHECK(depth < sizes_.size(), Code::script, "kf.tensor: a list stands where a number is wanted{}", place());
    KF_CHECK(sizes_[depth] == length, Code::script, "kf.tensor: a list of {} items stands beside lists of {}{}", length, sizes_[depth],
             place());
    sizes_closed_ = sizes_closed_ || length == 0;
    luaL_checkstack(L_, 3, "kf.tensor: nested too deep");
    for (int i = 1; i <= length; ++i) {
      path_.push_back(i);
      lua_rawgeti(L_, index, i);
      read(lua_gettop(L_), depth + 1);
      lua_pop(L_, 1);
      path_.pop_back();
    }
  }

  at::Tensor finish() const {
    const at::Tensor flat = at::isFloatingType(type_) || type_ == at::kBool || at::isComplexType(type_) ? at::tensor(reals_, at::kDouble)
                                                                                                        : at::tensor(integers_, at::kLong);
    return flat.to(type_).reshape(sizes_);
  }

 private:
  /// " at [2][1]", counted from 1 as Lua's tables are.
  std::string place() const {
    std::string out;
    for (const int i : path_) {
      out += "[" + to_text(i) + "]";
    }
    return out.empty() ? "" : " at " + out;
  }

  void take(int index) {
    if (at::isIntegralType(type_, /*includeBool=*/false)) {
      integers_.push_back(checked_element(L_, index, type_, "kf.tensor", place()));
      return;
    }
    if (lua_type(L_, index) == LUA_TBOOLEAN) {
      reals_.push_back(lua_toboolean(L_, index));
    } else if (lua_type(L_, index) == LUA_TNUMBER) {
      reals_.push_back(lua_tonumber(L_, index));
    } else if (const auto value = float_at(L_, index)) {
      reals_.push_back(*value);
    } else {
      const auto wide = whole_number_at(L_, index);
      KF_CHECK(wide.has_value(), Code::script, "kf.tensor: expected a number, got {}{}", describe_any(L_, index), place());
      reals_.push_back(wide->beyond ? static_cast<double>(static_cast<std::uint64_t>(wide->value)) : static_cast<double>(wide->value));
    }
  }

  lua_State* L_;
  at::ScalarType type_;
  std::vector<std::int64_t> sizes_;
  bool sizes_closed_ = false;  // the depth is known: a number was met
  std::vector<double> reals_;
  std::vector<std::int64_t> integers_;
  std::vector<int> path_;
};

/// Booleans make a bool tensor, everything else float32.
at::ScalarType default_type(lua_State* L, int index) {
  lua_pushvalue(L, index);
  while (lua_istable(L, -1)) {
    lua_rawgeti(L, -1, 1);
    lua_remove(L, -2);
  }
  const bool boolean = lua_type(L, -1) == LUA_TBOOLEAN;
  lua_pop(L, 1);
  return boolean ? at::kBool : at::kFloat;
}

void push_scalar(lua_State* L, const at::Tensor& value) {
  const at::Scalar scalar = value.item();
  if (scalar.isBoolean()) {
    lua_pushboolean(L, scalar.toBool());
  } else if (value.scalar_type() == at::ScalarType::UInt64) {
    push_wide_unsigned(L, scalar.toUInt64());
  } else if (scalar.isIntegral(/*includeBool=*/false)) {
    push_wide(L, scalar.toLong());
  } else if (scalar.isComplex()) {
    lua_createtable(L, 0, 2);
    set(L, "re", scalar.toComplexDouble().real());
    set(L, "im", scalar.toComplexDouble().imag());
  } else {
    lua_pushnumber(L, scalar.toDouble());
  }
}

/// Rows of a contiguous CPU tensor, `dim` by `dim`.
template <class T, class Push>
void push_rows(lua_State* L, const T*& data, at::IntArrayRef sizes, Push&& push_one) {
  luaL_checkstack(L, 3, "t:tolist: too many dims");
  if (sizes.empty()) {
    push_one(*data++);
    return;
  }
  lua_createtable(L, static_cast<int>(sizes[0]), 0);
  for (std::int64_t i = 0; i < sizes[0]; ++i) {
    push_rows(L, data, sizes.slice(1), push_one);
    lua_rawseti(L, -2, static_cast<int>(i + 1));
  }
}

constexpr char kCast[] = "kf.data_cast";
constexpr char kCastSource[] = R"(
local ffi = require("ffi")
return function(address, kind)
  return ffi.cast(kind, address)
end
)";

const char* pointer_kind(at::ScalarType type) {
  switch (type) {
    case at::kFloat: return "float *";
    case at::kDouble: return "double *";
    case at::kLong: return "int64_t *";
    case at::kInt: return "int32_t *";
    case at::kShort: return "int16_t *";
    case at::kChar: return "int8_t *";
    case at::kByte: return "uint8_t *";
    case at::kBool: return "bool *";
    case at::kHalf:
    case at::kBFloat16:
    case at::ScalarType::UInt16: return "uint16_t *";  // the bits of 16-bit floats
    case at::ScalarType::UInt32: return "uint32_t *";
    case at::ScalarType::UInt64: return "uint64_t *";
    default: return nullptr;
  }
}

}  // namespace

at::Tensor read_tensor(lua_State* L, int index, std::optional<at::ScalarType> type) {
  Reader reader(L, type.value_or(default_type(L, index)));
  reader.read(index, 0);
  return reader.finish();
}

int make_tensor(lua_State* L) {
  const TensorOptions options = read_options(L, 2, "kf.tensor");
  at::Tensor out;
  if (const at::Tensor* other = tensor_at(L, 1)) {
    out = other->detach().clone();
    out = options.dtype ? out.to(*options.dtype) : out;
  } else {
    KF_CHECK(!lua_isnoneornil(L, 1), Code::script, "kf.tensor: expected numbers in (nested) lists, or a number, got {}", describe(L, 1));
    out = read_tensor(L, 1, options.dtype);
  }
  if (options.device) {
    out = out.to(*options.device);
  }
  push_tensor(L, options.requires_grad ? out.set_requires_grad(true) : out, Memory::fresh);
  return 1;
}

int to_list(lua_State* L) {
  const at::Tensor source = check_tensor(L, 1, "t:tolist").detach().to(at::kCPU);
  if (at::isFloatingType(source.scalar_type())) {
    const at::Tensor flat = source.to(at::kDouble).contiguous();
    const double* data = flat.const_data_ptr<double>();
    push_rows(L, data, flat.sizes(), [&](double value) { lua_pushnumber(L, value); });
  } else if (source.scalar_type() == at::kBool) {
    const at::Tensor flat = source.contiguous();
    const bool* data = flat.const_data_ptr<bool>();
    push_rows(L, data, flat.sizes(), [&](bool value) { lua_pushboolean(L, value); });
  } else if (source.scalar_type() == at::ScalarType::UInt64) {
    const at::Tensor flat = source.contiguous();
    const auto* data = flat.const_data_ptr<std::uint64_t>();
    push_rows(L, data, flat.sizes(), [&](std::uint64_t value) { push_wide_unsigned(L, value); });
  } else {
    KF_CHECK(at::isIntegralType(source.scalar_type(), false), Code::script, "t:tolist: {} has no plain numbers", tensor_text(source));
    const at::Tensor flat = source.to(at::kLong).contiguous();
    const std::int64_t* data = flat.const_data_ptr<std::int64_t>();
    push_rows(L, data, flat.sizes(), [&](std::int64_t value) { push_wide(L, value); });
  }
  return 1;
}

int item(lua_State* L) {
  const at::Tensor& tensor = check_tensor(L, 1, "t:item");
  KF_CHECK(tensor.numel() == 1, Code::script, "t:item: a tensor of one element is wanted, got {}", tensor_text(tensor));
  push_scalar(L, tensor);
  return 1;
}

int data_pointer(lua_State* L) {
  const at::Tensor& tensor = check_tensor(L, 1, "t:data_ptr");
  KF_CHECK(tensor.is_cpu(), Code::script, "t:data_ptr: the tensor is on {}; take t:cpu()", tensor.device().str());
  KF_CHECK(tensor.is_contiguous(), Code::script, "t:data_ptr: the tensor is not contiguous; take t:contiguous()");
  const char* kind = pointer_kind(tensor.scalar_type());
  KF_CHECK(kind != nullptr, Code::script, "t:data_ptr: there is no C type for {}", name_of(tensor.scalar_type()));
  lua_getfield(L, LUA_REGISTRYINDEX, kCast);
  lua_pushlightuserdata(L, tensor.data_ptr());
  lua_pushstring(L, kind);
  lua_call(L, 2, 1);
  lua_pushnumber(L, static_cast<double>(tensor.numel()));
  return 2;
}

void open_data_pointer(lua_State* L) {
  KF_CHECK(luaL_loadbuffer(L, kCastSource, sizeof kCastSource - 1, "=kf.data_ptr") == 0, Code::other, "{}", lua_tostring(L, -1));
  lua_call(L, 0, 1);
  lua_setfield(L, LUA_REGISTRYINDEX, kCast);
}

}  // namespace kf::lua
