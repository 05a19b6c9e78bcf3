#include "parallel/mesh/mesh.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <set>

#include "core/error.h"

using namespace kf;
using Catch::Matchers::Contains;

namespace {

using Ranks = std::vector<std::int64_t>;

// Every mesh of up to `most` ranks with these degrees: several hundred.
std::vector<Mesh> meshes(std::int64_t most) {
  std::vector<Mesh> all;
  for (const std::int64_t pp : {1, 2, 3}) {
    for (const std::int64_t replicate : {1, 2}) {
      for (const std::int64_t shard : {1, 2, 3, 4}) {
        for (const std::int64_t cp : {1, 2, 3}) {
          for (const std::int64_t tp : {1, 2, 4}) {
            for (const std::int64_t ep : {1, 2, 3}) {
              if (pp * replicate * shard * cp * ep * tp <= most) {
                all.emplace_back(PerAxis{pp, replicate, shard, cp, ep, tp});
              }
            }
          }
        }
      }
    }
  }
  return all;
}

// Whether the groups are ascending, have `size` ranks, hold their rank, and are the same list for each of their ranks: then they partition.
bool partitions(const Mesh& mesh, std::int64_t size, const std::function<Ranks(std::int64_t)>& group) {
  for (std::int64_t rank = 0; rank < mesh.size(); ++rank) {
    const Ranks ranks = group(rank);
    const bool right = static_cast<std::int64_t>(ranks.size()) == size && std::is_sorted(ranks.begin(), ranks.end(), std::less_equal<>()) &&
                       std::binary_search(ranks.begin(), ranks.end(), rank) &&
                       std::all_of(ranks.begin(), ranks.end(), [&](std::int64_t other) { return group(other) == ranks; });
    if (!right) {
      return false;
    }
  }
  return true;
}

}  // namespace

TEST_CASE("mesh: coordinates invert, and are below the degrees", "[parallel]") {
  const std::vector<Mesh> all = meshes(150);
  CHECK(all.size() > 400);
  for (const Mesh& mesh : all) {
    std::set<std::int64_t> seen;
    for (std::int64_t rank = 0; rank < mesh.size(); ++rank) {
      const PerAxis at = mesh.coordinates(rank);
      REQUIRE(mesh.rank_at(at) == rank);
      for (const Axis axis : kAxes) {
        REQUIRE((at[axis] >= 0 && at[axis] < mesh.degree(axis)));
      }
    }
  }
}

TEST_CASE("mesh: every rank is in one group an axis, at its coordinate, and groups partition the world", "[parallel]") {
  for (const Mesh& mesh : meshes(100)) {
    for (const Axis axis : kAxes) {
      REQUIRE(partitions(mesh, mesh.degree(axis), [&](std::int64_t rank) { return mesh.ranks_along(axis, rank); }));
      for (std::int64_t rank = 0; rank < mesh.size(); ++rank) {
        REQUIRE(mesh.ranks_along(axis, rank).at(static_cast<std::size_t>(mesh.coordinate(rank, axis))) == rank);
      }
    }
    const PerAxis& of = mesh.degrees();
    const std::int64_t shards = of.dp_shard * of.cp * of.ep;
    REQUIRE(partitions(mesh, of.dp_replicate * shards, [&](std::int64_t rank) { return mesh.data_ranks(rank); }));
    REQUIRE(partitions(mesh, shards, [&](std::int64_t rank) { return mesh.shard_ranks(rank); }));
    REQUIRE(partitions(mesh, shards / of.ep, [&](std::int64_t rank) { return mesh.expert_shard_ranks(rank); }));
  }
}

TEST_CASE("mesh: along an axis, ranks differ in that coordinate alone", "[parallel]") {
  for (const Mesh& mesh : meshes(60)) {
    for (const Axis axis : kAxes) {
      for (std::int64_t rank = 0; rank < mesh.size(); ++rank) {
        for (const std::int64_t other : mesh.ranks_along(axis, rank)) {
          for (const Axis a : kAxes) {
            REQUIRE((a == axis || mesh.coordinate(other, a) == mesh.coordinate(rank, a)));
          }
        }
      }
    }
  }
}

TEST_CASE("mesh: every run along ep holds each expert once, and expert shards hold the same experts", "[parallel]") {
  for (const Mesh& mesh : meshes(100)) {
    for (std::int64_t rank = 0; rank < mesh.size(); ++rank) {
      const Ranks shards = mesh.shard_ranks(rank), run = mesh.ranks_along(Axis::ep, rank), same = mesh.expert_shard_ranks(rank);
      REQUIRE(std::includes(shards.begin(), shards.end(), run.begin(), run.end()));
      REQUIRE(std::includes(shards.begin(), shards.end(), same.begin(), same.end()));
      Ranks both;
      std::set_intersection(run.begin(), run.end(), same.begin(), same.end(), std::back_inserter(both));
      REQUIRE(both == Ranks{rank});
      REQUIRE(run.size() * same.size() == shards.size());
      for (const std::int64_t other : same) {
        REQUIRE(mesh.coordinate(other, Axis::ep) == mesh.coordinate(rank, Axis::ep));
      }
    }
  }
}

TEST_CASE("mesh: readers of data are numbered over replicas, shards and ep; cp, tp and pp ranks read the same", "[parallel]") {
  for (const Mesh& mesh : meshes(100)) {
    std::map<std::int64_t, std::int64_t> count;
    for (std::int64_t rank = 0; rank < mesh.size(); ++rank) {
      ++count[mesh.reader(rank)];
      for (const Axis axis : {Axis::cp, Axis::tp, Axis::pp}) {
        for (const std::int64_t other : mesh.ranks_along(axis, rank)) {
          REQUIRE(mesh.reader(other) == mesh.reader(rank));
        }
      }
    }
    REQUIRE(static_cast<std::int64_t>(count.size()) == mesh.readers());
    REQUIRE(count.rbegin()->first == mesh.readers() - 1);
  }
}

TEST_CASE("mesh: ranks of tp are neighbours, stages are far apart", "[parallel]") {
  const Mesh mesh(PerAxis{2, 1, 2, 2, 2, 2});
  CHECK(mesh.size() == 32);
  CHECK(mesh.ranks_along(Axis::tp, 5) == Ranks{4, 5});
  CHECK(mesh.ranks_along(Axis::ep, 5) == Ranks{5, 7});
  CHECK(mesh.ranks_along(Axis::cp, 5) == Ranks{1, 5});
  CHECK(mesh.ranks_along(Axis::dp_shard, 5) == Ranks{5, 13});
  CHECK(mesh.ranks_along(Axis::pp, 5) == Ranks{5, 21});
  CHECK(mesh.data_ranks(5) == Ranks{1, 3, 5, 7, 9, 11, 13, 15});
  CHECK(mesh.expert_shard_ranks(5) == Ranks{1, 5, 9, 13});
  CHECK(Mesh().size() == 1);
}

TEST_CASE("mesh: degrees that do not fit are refused", "[parallel]") {
  CHECK(Mesh::of_world({2, 1, -1, 2, 2, 2}, 32).degree(Axis::dp_shard) == 2);
  CHECK(PerAxis{1, 1, -1, 1, 1, 4}.on_world(2).dp_shard == 1);
  CHECK_THROWS_WITH(Mesh::of_world({1, 1, -1, 1, 1, 3}, 8),
                    "the degrees ask for 6 ranks, the world has 8: pp 1, dp_replicate 1, dp_shard 2, cp 1, ep 1, tp 3");
  CHECK_THROWS_WITH(Mesh::of_world({1, 1, 4, 1, 1, 4}, 8),
                    "the degrees ask for 16 ranks, the world has 8: pp 1, dp_replicate 1, dp_shard 4, cp 1, ep 1, tp 4");
  CHECK_THROWS_WITH(Mesh(PerAxis{1, 1, 1, 1, 1, 0}), "distributed.tp is 0, must be at least 1");
  CHECK_THROWS_WITH(Mesh(PerAxis{1, 1, -2, 1, 1, 1}), "distributed.dp_shard is -2, must be at least 1");
  constexpr std::int64_t kMuch = std::int64_t{1} << 20;
  CHECK_THROWS_WITH(Mesh(PerAxis{kMuch, kMuch, kMuch, kMuch, kMuch, kMuch}), Contains("more than 2147483648 ranks"));
  CHECK_THROWS_WITH(Mesh().coordinates(1), "rank 1 of a world of 1");
  CHECK_THROWS_WITH(Mesh().rank_at({0, 0, 0, 1, 0, 0}), "coordinate 1 of 1 along cp");
}
