#include "parallel/world.h"

#include "core/error.h"
#include "parallel/one_rank.h"

namespace kf {

World::World() : World(std::make_shared<OneRank>(), Mesh()) {}

World::World(Group& all, const Mesh& mesh) : World(std::shared_ptr<Group>(std::shared_ptr<Group>(), &all), mesh) {}

World::World(std::shared_ptr<Group> all, const Mesh& mesh) : mesh_(mesh), all_(std::move(all)) {
  KF_CHECK(mesh_.size() == all_->size(), Code::config, "the mesh has {} ranks, the world {}", mesh_.size(), all_->size());
  // The order in which groups are made, and which of them are one, depends on the degrees alone: it is the same on all ranks.
  const auto make = [&](std::string_view name, const std::vector<std::int64_t>& ranks) -> std::shared_ptr<Group> {
    return all_->part(std::string(name), ranks);
  };
  for (const Axis axis : kAxes) {
    along_[static_cast<std::size_t>(axis)] = make(name_of(axis), mesh_.ranks_along(axis, rank()));
  }
  const std::int64_t cp = mesh_.degree(Axis::cp), ep = mesh_.degree(Axis::ep);
  const std::shared_ptr<Group>& shard = along_[static_cast<std::size_t>(Axis::dp_shard)];
  data_ = mesh_.degree(Axis::pp) * mesh_.degree(Axis::tp) > 1 ? make("data", mesh_.data_ranks(rank())) : all_;
  shards_ = cp * ep > 1 ? make("shards", mesh_.shard_ranks(rank())) : shard;
  expert_shards_ = ep == 1 ? shards_ : cp > 1 ? make("expert_shards", mesh_.expert_shard_ranks(rank())) : shard;
  stage_ = mesh_.degree(Axis::tp) == 1 ? shards_ : make("stage", mesh_.stage_ranks(rank()));
  std::vector<std::int64_t> everyone;
  for (std::int64_t rank = 0; rank < size(); ++rank) {
    everyone.push_back(rank);
  }
  files_ = make("files", everyone);
}

void World::end(std::string_view why) const noexcept { all_->end(why); }

}  // namespace kf
