#include "parallel/worker_world.h"

#include <vector>

namespace kf {

World worker_world(const World& world) {
  const Mesh& mesh = world.mesh();
  const std::int64_t worker = mesh.coordinate(world.rank(), Axis::dp_replicate);
  std::vector<std::int64_t> ranks;
  for (std::int64_t rank = 0; rank < world.size(); ++rank) {
    if (mesh.coordinate(rank, Axis::dp_replicate) == worker) {
      ranks.push_back(rank);
    }
  }
  PerAxis degrees = mesh.degrees();
  degrees.dp_replicate = 1;
  return {std::shared_ptr<Group>(world.all().part("worker", ranks)), Mesh(degrees)};
}

}  // namespace kf
