#include "bindings/dist/dist.h"

#include <ATen/ATen.h>

#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings/tensor/tensor.h"
#include "bindings/vm/collect.h"
#include "bindings/vm/guard.h"
#include "bindings/vm/stack.h"
#include "core/error.h"
#include "parallel/graph.h"
#include "parallel/rows.h"
#include "parallel/world.h"

namespace kf::lua {
namespace {

constexpr char kRegistered[] = "kf.dist.ranks";

/// What a runtime knows of ranks.
struct Ranks {
  std::int64_t processes = 1;
  World alone;               // where no run is on
  std::optional<World> now;  // of the run that is on
  std::vector<World> kept;   // of runs that are over, for graphs that scripts may have kept
  bool in_graph = false;     // whether one may hold a group of `now`
};

Ranks& ranks_of(lua_State* L) {
  lua_getfield(L, LUA_REGISTRYINDEX, kRegistered);
  auto* const ranks = static_cast<Ranks*>(lua_touserdata(L, -1));
  lua_pop(L, 1);
  KF_CHECK(ranks != nullptr, Code::other, "kf.dist was not opened");
  return *ranks;
}

const World& world_of(lua_State* L, const std::string& function) {
  Ranks& ranks = ranks_of(L);
  KF_CHECK(ranks.now || ranks.processes == 1, Code::script,
           "{}: no run is on, and the ranks meet when one begins; call it in a hook or in a part, not while the script runs", function);
  return ranks.now ? *ranks.now : ranks.alone;
}

/// The group of an axis: "dp_shard", "tp", ...; "data" for those with other tokens (World::data); "all", also for nothing.
Group& group_at(lua_State* L, int index, const std::string& function) {
  const World& world = world_of(L, function);
  if (lua_isnoneornil(L, index)) {
    return world.all();
  }
  const std::string wanted = check_text(L, index, function, "an axis");
  std::vector<std::string> names;
  for (const Axis axis : kAxes) {
    if (wanted == name_of(axis)) {
      return world.along(axis);
    }
    names.emplace_back(name_of(axis));
  }
  if (wanted == "all" || wanted == "data") {
    return wanted == "all" ? world.all() : world.data();
  }
  names.insert(names.end(), {"data", "all"});
  fail(Code::script, "{}: no axis '{}'{}", function, wanted, suggestion(wanted, names));
}

/// The dim at `index`, 0 where there is none.
std::int64_t dim_at(lua_State* L, int index, const at::Tensor& t, const std::string& function) {
  const std::optional<std::int64_t> dim = lua_isnoneornil(L, index) ? 0 : exact_integer(L, index);
  KF_CHECK(dim && *dim >= -t.dim() && *dim < t.dim(), Code::script, "{}: expected a dim of {}, got {}", function, tensor_text(t),
           describe(L, index));
  return *dim < 0 ? *dim + t.dim() : *dim;
}

std::int64_t rank_at(lua_State* L, int index, const Group& group, const std::string& function) {
  const std::optional<std::int64_t> rank = exact_integer(L, index);
  KF_CHECK(rank && *rank >= 0 && *rank < group.size(), Code::script, "{}: expected a rank of {}, 0 to {}, got {}", function, group.name(),
           group.size() - 1, describe(L, index));
  return *rank;
}

int give(lua_State* L, const at::Tensor& result) {
  if (result.requires_grad()) {
    ranks_of(L).in_graph = true;
  }
  push_tensor(L, result, Memory::fresh);
  return 1;
}

/// How many rows along `dim` every rank has.
std::vector<std::int64_t> rows_of_all(std::int64_t mine, Group& group) {
  std::vector<std::int64_t> out;
  for (const std::string& told : group.tell(std::to_string(mine))) {
    out.push_back(std::stoll(told));
  }
  return out;
}

/// sum(t [, axis])
int sum(lua_State* L) {
  const at::Tensor& t = check_tensor(L, 1, "kf.dist.sum");
  return give(L, summed(t, group_at(L, 2, "kf.dist.sum")));
}

/// shared(t [, axis])
int share(lua_State* L) {
  const at::Tensor& t = check_tensor(L, 1, "kf.dist.shared");
  return give(L, shared(t, group_at(L, 2, "kf.dist.shared")));
}

/// largest(t [, axis])
int largest(lua_State* L) {
  const at::Tensor out = check_tensor(L, 1, "kf.dist.largest").detach().clone(at::MemoryFormat::Contiguous);
  group_at(L, 2, "kf.dist.largest").largest(out);
  return give(L, out);
}

/// broadcast(t, axis, from)
int broadcast(lua_State* L) {
  const at::Tensor out = check_tensor(L, 1, "kf.dist.broadcast").detach().clone(at::MemoryFormat::Contiguous);
  Group& group = group_at(L, 2, "kf.dist.broadcast");
  group.broadcast(out, rank_at(L, 3, group, "kf.dist.broadcast"));
  return give(L, out);
}

/// gather(t [, axis [, dim]])
int gather(lua_State* L) {
  const at::Tensor& t = check_tensor(L, 1, "kf.dist.gather");
  Group& group = group_at(L, 2, "kf.dist.gather");
  const std::int64_t dim = dim_at(L, 3, t, "kf.dist.gather");
  return give(L, gathered(t, dim, rows_of_all(t.size(dim), group), group));
}

/// scatter(t [, axis [, dim]])
int scatter(lua_State* L) {
  const at::Tensor& t = check_tensor(L, 1, "kf.dist.scatter");
  Group& group = group_at(L, 2, "kf.dist.scatter");
  return give(L, scattered(t, dim_at(L, 3, t, "kf.dist.scatter"), group));
}

/// part(t [, axis [, dim]])
int part(lua_State* L) {
  const at::Tensor& t = check_tensor(L, 1, "kf.dist.part");
  Group& group = group_at(L, 2, "kf.dist.part");
  return give(L, own_part(t, dim_at(L, 3, t, "kf.dist.part"), group));
}

/// join(t [, axis [, dim]])
int join_parts(lua_State* L) {
  const at::Tensor& t = check_tensor(L, 1, "kf.dist.join");
  Group& group = group_at(L, 2, "kf.dist.join");
  const std::int64_t dim = dim_at(L, 3, t, "kf.dist.join");
  const std::vector<std::int64_t> rows = rows_of_all(t.size(dim), group);
  const std::int64_t length = offsets_of(rows).back();
  KF_CHECK(rows == even_rows(length, group.size()), Code::script,
           "kf.dist.join: the parts along dim {} are not those that kf.dist.part makes of {} rows; use kf.dist.gather", dim, length);
  return give(L, joined(t, dim, length, group));
}

/// exchange(t, axis, sent) -> tensor, received
int exchange(lua_State* L) {
  const at::Tensor& t = check_tensor(L, 1, "kf.dist.exchange");
  Group& group = group_at(L, 2, "kf.dist.exchange");
  KF_CHECK(t.dim() > 0, Code::script, "kf.dist.exchange: expected a tensor with rows, got {}", tensor_text(t));
  KF_CHECK(lua_istable(L, 3), Code::script, "kf.dist.exchange: expected how many rows go to each rank of {}, got {}", group.name(),
           describe(L, 3));
  std::vector<std::int64_t> sent;
  for (std::int64_t rank = 0; rank < group.size(); ++rank) {
    lua_rawgeti(L, 3, static_cast<int>(rank) + 1);
    const std::optional<std::int64_t> rows = exact_integer(L, -1);
    KF_CHECK(rows && *rows >= 0, Code::script, "kf.dist.exchange: the rows for rank {} must be a whole number, got {}", rank,
             describe(L, -1));
    sent.push_back(*rows);
    lua_pop(L, 1);
  }
  const std::int64_t all = offsets_of(sent).back();
  KF_CHECK(all == t.size(0), Code::script, "kf.dist.exchange: {} rows are to go to the ranks of {}, and the tensor has {}", all,
           group.name(), t.size(0));
  const Splits splits = group.agree(sent);
  give(L, exchanged(t, splits, group));
  lua_newtable(L);
  for (std::size_t rank = 0; rank < splits.received.size(); ++rank) {
    lua_pushnumber(L, static_cast<double>(splits.received[rank]));
    lua_rawseti(L, -2, static_cast<int>(rank) + 1);
  }
  return 2;
}

/// tell(text [, axis]) -> what every rank told
int tell(lua_State* L) {
  const std::string text = check_text(L, 1, "kf.dist.tell", "a string");
  const std::vector<std::string> all = group_at(L, 2, "kf.dist.tell").tell(text);
  lua_newtable(L);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    push(L, all[rank]);
    lua_rawseti(L, -2, static_cast<int>(rank) + 1);
  }
  return 1;
}

/// barrier([axis])
int barrier(lua_State* L) {
  group_at(L, 1, "kf.dist.barrier").barrier();
  return 0;
}

void push_axes(lua_State* L, const char* name, const PerAxis& numbers) {
  lua_createtable(L, 0, static_cast<int>(kAxes.size()));
  for (const Axis axis : kAxes) {
    set(L, std::string(name_of(axis)).c_str(), static_cast<double>(numbers[axis]));
  }
  lua_setfield(L, -2, name);
}

}  // namespace

void open_dist(lua_State* L, std::int64_t world) {
  auto* const ranks = new (lua_newuserdata(L, sizeof(Ranks))) Ranks();
  ranks->processes = world;
  lua_newtable(L);
  lua_pushcfunction(L, &collect<Ranks>);
  lua_setfield(L, -2, "__gc");
  lua_setmetatable(L, -2);
  lua_setfield(L, LUA_REGISTRYINDEX, kRegistered);
}

void push_dist(lua_State* L, std::int64_t rank, std::int64_t world) {
  const luaL_Reg functions[] = {
      {"sum", &guarded<sum>},           {"shared", &guarded<share>},    {"largest", &guarded<largest>}, {"broadcast", &guarded<broadcast>},
      {"gather", &guarded<gather>},     {"scatter", &guarded<scatter>}, {"part", &guarded<part>},       {"join", &guarded<join_parts>},
      {"exchange", &guarded<exchange>}, {"tell", &guarded<tell>},       {"barrier", &guarded<barrier>}, {nullptr, nullptr}};
  lua_newtable(L);
  luaL_register(L, nullptr, functions);
  set(L, "rank", static_cast<double>(rank));
  set(L, "world", static_cast<double>(world));
}

void set_world(lua_State* L, const World* world) {
  Ranks& ranks = ranks_of(L);
  if (ranks.now && std::exchange(ranks.in_graph, false)) {
    ranks.kept.push_back(*ranks.now);
  }
  ranks.now.reset();
  if (world != nullptr) {
    ranks.now.emplace(*world);
  }
}

void push_mesh(lua_State* L) {
  const Ranks& ranks = ranks_of(L);
  if (!ranks.now) {
    lua_pushnil(L);
    return;
  }
  const World& world = *ranks.now;
  lua_createtable(L, 0, 4);
  set(L, "rank", static_cast<double>(world.rank()));
  set(L, "size", static_cast<double>(world.size()));
  push_axes(L, "degrees", world.mesh().degrees());
  push_axes(L, "coordinates", world.mesh().coordinates(world.rank()));
}

}  // namespace kf::lua
