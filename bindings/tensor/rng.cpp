#include "bindings/tensor/rng.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <new>

#include "bindings/tensor/tensor.h"
#include "bindings/vm/collect.h"
#include "bindings/vm/guard.h"
#include "bindings/vm/stack.h"
#include "core/error.h"
#include "core/text.h"
#include "model/seed.h"

namespace kf::lua {
namespace {

struct GeneratorBox {
  static constexpr std::uint64_t kMagic = 0x6b665f67656e6572ULL;
  std::uint64_t magic = kMagic;
  at::Generator generator;
  char padding[64] = {};  // a size of its own: `generator_at` compares sizes first
};

constexpr char kMetatable[] = "kf.generator";
constexpr std::uint64_t kFirstSeed = 42;  // ATen's own default is another one in every process

void set_seed(std::uint64_t seed) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_current_seed(seed);
}

at::Generator self(lua_State* L, const char* method) {
  const at::Generator* generator = generator_at(L, 1);
  KF_CHECK(generator != nullptr, Code::script, "rng:{}: call it with a colon, rng:{}(...), got {}", method, method, describe(L, 1));
  return *generator;
}

std::int64_t integer_argument(lua_State* L, int index, const char* method) {
  const auto value = exact_integer(L, index);
  KF_CHECK(value.has_value(), Code::script, "rng:{}: expected a whole number, got {}", method, describe(L, index));
  return *value;
}

int rng_seed(lua_State* L) {
  at::Generator generator = self(L, "seed");
  if (lua_isnoneornil(L, 2)) {
    lua_pushnumber(L, static_cast<double>(generator.current_seed()));
    return 1;
  }
  const std::int64_t seed = integer_argument(L, 2, "seed");
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_current_seed(static_cast<std::uint64_t>(seed));
  lua_settop(L, 1);
  return 1;
}

/// As math.random: none for [0, 1), (m) for 1 to m, (m, n) for m to n.
int rng_random(lua_State* L) {
  const at::Generator generator = self(L, "random");
  if (lua_isnoneornil(L, 2)) {
    lua_pushnumber(L, at::rand({}, generator, at::kDouble).item<double>());
    return 1;
  }
  const std::int64_t low = lua_isnoneornil(L, 3) ? 1 : integer_argument(L, 2, "random");
  const std::int64_t high = integer_argument(L, lua_isnoneornil(L, 3) ? 2 : 3, "random");
  KF_CHECK(low <= high, Code::script, "rng:random: the range {} to {} is empty", low, high);
  lua_pushnumber(L, static_cast<double>(at::randint(low, high + 1, {}, generator, at::kLong).item<std::int64_t>()));
  return 1;
}

int rng_normal(lua_State* L) {
  const at::Generator generator = self(L, "normal");
  const double mean = luaL_optnumber(L, 2, 0);
  const double std = luaL_optnumber(L, 3, 1);
  lua_pushnumber(L, mean + std * at::randn({}, generator, at::kDouble).item<double>());
  return 1;
}

int rng_state(lua_State* L) {
  at::Generator generator = self(L, "state");
  const std::lock_guard<std::mutex> lock(generator.mutex());
  push_tensor(L, generator.get_state(), Memory::fresh);
  return 1;
}

int rng_load(lua_State* L) {
  at::Generator generator = self(L, "load");
  const at::Tensor state = check_tensor(L, 2, "rng:load");
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_state(state);
  return 0;
}

int rng_text(lua_State* L) {
  const at::Generator generator = self(L, "tostring");
  push(L, format("generator (seed {})", generator.current_seed()));
  return 1;
}

void push_metatable(lua_State* L) {
  if (luaL_newmetatable(L, kMetatable) == 0) {
    return;
  }
  const luaL_Reg methods[] = {{"seed", &guarded<rng_seed>},   {"random", &guarded<rng_random>}, {"normal", &guarded<rng_normal>},
                              {"state", &guarded<rng_state>}, {"load", &guarded<rng_load>},     {nullptr, nullptr}};
  lua_newtable(L);
  luaL_register(L, nullptr, methods);
  lua_setfield(L, -2, "__index");
  lua_pushcfunction(L, &guarded<rng_text>);
  lua_setfield(L, -2, "__tostring");
  lua_pushcfunction(L, collect<GeneratorBox>);
  lua_setfield(L, -2, "__gc");
  set(L, "__metatable", std::string_view("generator"));
}

}  // namespace

const at::Generator* generator_at(lua_State* L, int index) {
  const void* place = lua_touserdata(L, index);
  if (place == nullptr || lua_objlen(L, index) != sizeof(GeneratorBox)) {
    return nullptr;
  }
  const auto* box = static_cast<const GeneratorBox*>(place);
  return box->magic == GeneratorBox::kMagic ? &box->generator : nullptr;
}

void push_generator(lua_State* L, at::Generator generator) {
  auto* box = new (lua_newuserdata(L, sizeof(GeneratorBox))) GeneratorBox();
  box->generator = std::move(generator);
  push_metatable(L);
  lua_setmetatable(L, -2);
}

void push_rng(lua_State* L) { push_generator(L, at::detail::getDefaultCPUGenerator()); }

void begin_rng() { set_seed(kFirstSeed); }

RunDraws::RunDraws(std::int64_t seed) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  {
    const std::lock_guard<std::mutex> lock(generator.mutex());
    before_ = generator.get_state();
  }
  set_seed(seed_of(static_cast<std::uint64_t>(seed), "kf.rng"));
}

RunDraws::~RunDraws() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_state(before_);
}

int make_generator(lua_State* L) {
  const auto seed = exact_integer(L, 1);
  KF_CHECK(seed.has_value(), Code::script, "kf.generator: expected a seed (a whole number), got {}", describe(L, 1));
  push_generator(L, at::detail::createCPUGenerator(static_cast<std::uint64_t>(*seed)));
  return 1;
}

}  // namespace kf::lua
