#include "parallel/world.h"

#include <catch2/catch.hpp>

#include "core/error.h"
#include "parallel/thread_ranks.h"

using namespace kf;

namespace {

void expect(bool right, const std::string& what) {
  if (!right) {
    throw std::runtime_error(what);
  }
}

}  // namespace

TEST_CASE("world: one rank leads, reads all data, and is alone along every axis", "[parallel]") {
  const World world;
  CHECK(world.rank() == 0);
  CHECK(world.size() == 1);
  CHECK(world.leads());
  CHECK(world.share().rank == 0);
  CHECK(world.share().world == 1);
  for (const Axis axis : kAxes) {
    CHECK(world.along(axis).size() == 1);
  }
  CHECK(world.data().size() == 1);
  CHECK(world.files().size() == 1);
}

TEST_CASE("world: groups are those of the mesh, on every shape of eight ranks", "[parallel]") {
  for (const PerAxis& degrees : {PerAxis{1, 1, 8, 1, 1, 1}, PerAxis{2, 1, 2, 1, 1, 2}, PerAxis{1, 2, 1, 2, 1, 2}, PerAxis{1, 2, 2, 1, 2, 1},
                                 PerAxis{1, 1, 2, 2, 2, 1}, PerAxis{1, 1, 1, 1, 4, 2}, PerAxis{8, 1, 1, 1, 1, 1}}) {
    const Mesh mesh(degrees);
    run_ranks(8, [&](Group& all) {
      const World world(all, mesh);
      for (const Axis axis : kAxes) {
        expect(world.along(axis).ranks() == mesh.ranks_along(axis, all.rank()), std::string(name_of(axis)));
        world.along(axis).barrier();
      }
      expect(world.data().ranks() == mesh.data_ranks(all.rank()), "data");
      expect(world.shards().ranks() == mesh.shard_ranks(all.rank()), "shards");
      expect(world.expert_shards().ranks() == mesh.expert_shard_ranks(all.rank()), "expert_shards");
      expect(world.files().ranks() == all.ranks() && &world.files() != &world.all(), "files");
      expect(world.share().rank == mesh.reader(all.rank()) && world.share().world == mesh.readers(), "share");
      expect(world.leads() == (all.rank() == 0), "leads");
      const std::vector<std::string> told = world.data().tell(std::to_string(all.rank()));
      for (std::size_t i = 0; i < told.size(); ++i) {
        expect(told[i] == std::to_string(world.data().ranks()[i]), "tell");
      }
    });
  }
}

TEST_CASE("world: a mesh of another size is refused", "[parallel]") {
  CHECK_THROWS_WITH(run_ranks(2,
                              [](Group& all) {
                                const World world(all, Mesh(PerAxis{1, 1, 3, 1, 1, 1}));
                              }),
                    "rank 0: the mesh has 3 ranks, the world 2");
}
