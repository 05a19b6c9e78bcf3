#include "bindings/nn/layer_options.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <iterator>

#include "bindings/nn/build_scope.h"
#include "bindings/tensor/tensor.h"
#include "bindings/vm/stack.h"
#include "core/error.h"
#include "model/init.h"

namespace kf::lua {

LayerOptions::LayerOptions(lua_State* L, int index, std::string where, std::initializer_list<const char*> known)
    : L_(L), index_(lua_isnoneornil(L, index) ? 0 : index), where_(std::move(where)) {
  if (index_ == 0) {
    return;
  }
  KF_CHECK(lua_istable(L, index), Code::script, "{}: expected a table of options, got {}", where_, describe_any(L, index));
  const std::vector<std::string> names(known.begin(), known.end());
  for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1)) {
    const std::string key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : describe(L, -2);
    bool found = false;
    for (const std::string& name : names) {
      found = found || name == key;
    }
    const bool draws = key == "std" && std::find(names.begin(), names.end(), "init") != names.end();
    KF_CHECK(found, Code::script, "{}: no option '{}'{}", where_, key,
             draws ? "; init = 0.02 draws with that deviation" : suggestion(key, names));
  }
}

bool LayerOptions::push(const char* key) const {
  if (index_ == 0) {
    return false;
  }
  lua_getfield(L_, index_, key);
  if (lua_isnil(L_, -1)) {
    lua_pop(L_, 1);
    return false;
  }
  return true;
}

double LayerOptions::number(const char* key, double fallback) const {
  if (!push(key)) {
    return fallback;
  }
  KF_CHECK(lua_type(L_, -1) == LUA_TNUMBER, Code::script, "{}: {} must be a number, got {}", where_, key, describe(L_, -1));
  const double value = lua_tonumber(L_, -1);
  lua_pop(L_, 1);
  return value;
}

std::int64_t LayerOptions::integer(const char* key, std::int64_t fallback) const {
  if (!push(key)) {
    return fallback;
  }
  const auto value = exact_integer(L_, -1);
  KF_CHECK(value.has_value(), Code::script, "{}: {} must be a whole number, got {}", where_, key, describe(L_, -1));
  lua_pop(L_, 1);
  return *value;
}

bool LayerOptions::flag(const char* key, bool fallback) const {
  if (!push(key)) {
    return fallback;
  }
  KF_CHECK(lua_type(L_, -1) == LUA_TBOOLEAN, Code::script, "{}: {} must be true or false, got {}", where_, key, describe(L_, -1));
  const bool value = lua_toboolean(L_, -1) != 0;
  lua_pop(L_, 1);
  return value;
}

std::string LayerOptions::text(const char* key, const std::string& fallback) const {
  if (!push(key)) {
    return fallback;
  }
  std::string value = check_text(L_, -1, where_, key);
  lua_pop(L_, 1);
  return value;
}

Init LayerOptions::init(const std::string& fallback, std::int64_t fan_in) const {
  std::string word = fallback;
  if (push("init")) {
    if (lua_type(L_, -1) == LUA_TNUMBER) {
      const double std = lua_tonumber(L_, -1);
      KF_CHECK(std >= 0, Code::script, "{}: init is a standard deviation from 0 on, got {}", where_, std);
      lua_pop(L_, 1);
      return Init::normal(std);
    }
    if (const at::Tensor* tensor = tensor_at(L_, -1)) {
      Init given = Init::given(tensor->detach().clone());
      lua_pop(L_, 1);
      return given;
    }
    word = check_text(L_, -1, where_, "init");
    lua_pop(L_, 1);
  }
  const config::ModelConfig& model = current_model();
  if (word == "normal") {
    return hidden_init(model, fan_in);
  }
  if (word == "output") {
    return output_init(model, fan_in);
  }
  if (word == "embedding") {
    return embedding_init(model);
  }
  if (word == "zeros") {
    return Init::zeros();
  }
  KF_CHECK(word == "ones", Code::script, "{}: no init '{}'{}", where_, word,
           suggestion(word, {"normal", "output", "embedding", "zeros", "ones"}));
  return Init::ones();
}

Role LayerOptions::role(Role fallback) const {
  static const std::vector<std::pair<std::string, Role>> roles = {
      {"hidden", Role::hidden}, {"embedding", Role::embedding}, {"head", Role::head}, {"router", Role::router}, {"vector", Role::vector}};
  const std::string word = text("role", "");
  if (word.empty()) {
    return fallback;
  }
  std::vector<std::string> names;
  for (const auto& [name, role] : roles) {
    if (name == word) {
      return role;
    }
    names.push_back(name);
  }
  fail(Code::script, "{}: no role '{}'{}", where_, word, suggestion(word, names));
}

std::optional<Split> LayerOptions::shard(std::int64_t dims) const {
  const std::string word = text("shard", "");
  if (word.empty()) {
    return std::nullopt;
  }
  const auto* const found = std::find(std::begin(kSplitNames), std::end(kSplitNames), word);
  KF_CHECK(found != std::end(kSplitNames), Code::script, "{}: no shard '{}'{}", where_, word,
           suggestion(word, {std::begin(kSplitNames), std::end(kSplitNames)}));
  const auto split = static_cast<Split>(found - std::begin(kSplitNames));
  KF_CHECK(split != Split::rowwise || dims > 1, Code::script,
           "{}: shard = \"rowwise\" splits the inputs of a matrix, and this is a vector; use \"colwise\" or \"replicate\"", where_);
  return split;
}

const config::ModelConfig& current_model() {
  static const config::ModelConfig defaults;
  return BuildScope::current() != nullptr ? BuildScope::current()->config().model : defaults;
}

std::int64_t check_size(lua_State* L, int index, const char* where, const char* what) {
  const auto value = exact_integer(L, index);
  KF_CHECK(value && *value > 0, Code::script, "{}: expected {} (a whole number above 0), got {}", where, what, describe_any(L, index));
  return *value;
}

}  // namespace kf::lua
