#include "bindings/value/ids.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "bindings/tensor/numbers.h"
#include "bindings/tensor/tensor.h"
#include "bindings/vm/stack.h"
#include "core/error.h"

namespace kf::lua {
namespace {

std::vector<std::int64_t> read_list(lua_State* L, int index, const std::string& where) {
  if (const at::Tensor* const tensor = tensor_at(L, index)) {
    KF_CHECK(tensor->scalar_type() == at::kLong && tensor->dim() <= 1, Code::script,
             "{} must give a list of ids or an int64 tensor of one dim, got {}", where, describe_any(L, index));
    const at::Tensor flat = tensor->detach().cpu().contiguous();
    const auto* const first = flat.const_data_ptr<std::int64_t>();
    return {first, first + flat.numel()};
  }
  KF_CHECK(lua_istable(L, index), Code::script, "{} must give a list of ids (or an int64 tensor), got {}", where, describe(L, index));
  const int list = index < 0 ? lua_gettop(L) + index + 1 : index;
  std::vector<std::int64_t> ids(lua_objlen(L, list));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    lua_rawgeti(L, list, static_cast<int>(i + 1));
    const auto id = whole_number_at(L, lua_gettop(L));
    KF_CHECK(id && !id->beyond, Code::script, "{}: item {} must be an id, got {}", where, i + 1, describe(L, -1));
    ids[i] = id->value;
    lua_pop(L, 1);
  }
  return ids;
}

}  // namespace

std::vector<std::int64_t> read_ids(lua_State* L, int index, std::int64_t vocab_size, const std::string& where) {
  std::vector<std::int64_t> ids = read_list(L, index, where);
  const auto wrong = std::find_if(ids.begin(), ids.end(), [&](std::int64_t id) { return id < 0 || id >= vocab_size; });
  KF_CHECK(wrong == ids.end(), Code::script, "{}: the id {} is not between 0 and {}", where, *wrong, vocab_size - 1);
  return ids;
}

void read_ids(lua_State* L, int index, std::span<std::int64_t> out, std::int64_t vocab_size, const std::string& where) {
  const std::vector<std::int64_t> ids = read_ids(L, index, vocab_size, where);
  KF_CHECK(ids.size() == out.size(), Code::script, "{} must give {} ids (seq_len + 1), got {}", where, out.size(), ids.size());
  std::copy(ids.begin(), ids.end(), out.begin());
}

void push_ids(lua_State* L, std::span<const std::int64_t> ids) {
  lua_createtable(L, static_cast<int>(ids.size()), 0);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    lua_pushnumber(L, static_cast<double>(ids[i]));
    lua_rawseti(L, -2, static_cast<int>(i + 1));
  }
}

}  // namespace kf::lua
