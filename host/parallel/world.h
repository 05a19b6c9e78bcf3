#pragma once
// All ranks of a run, and the groups that they form. Made once, handed down, never asked for.

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "parallel/group.h"
#include "parallel/mesh/mesh.h"

namespace kf {

/// Which part of the data is read here: what loaders take.
struct Share {
  std::int64_t rank = 0;
  std::int64_t world = 1;
};

/// One rank's view of the world. Copies are the same world. A device is added here when there is more than the CPU.
///
/// Communicators: all and data share one where they have the same ranks, so do dp_shard, shards, expert_shards and stage; every other group
/// has its own. Calls on different communicators may be under way at once, those on one run in order.
class World {
 public:
  /// One rank.
  World();
  /// Of the threads of run_ranks; `all` outlives it. All ranks make it at the same time.
  World(Group& all, const Mesh& mesh);
  /// The same; what is made of it holds it.
  World(std::shared_ptr<Group> all, const Mesh& mesh);

  std::int64_t rank() const { return all().rank(); }
  std::int64_t size() const { return all().size(); }
  const Mesh& mesh() const { return mesh_; }

  Group& all() const { return *all_; }
  Group& along(Axis axis) const { return *along_.at(static_cast<std::size_t>(axis)); }
  /// Who shares a loss: dp_replicate x dp_shard x cp x ep.
  Group& data() const { return *data_; }
  /// Over whom weights are cut: dp_shard x cp x ep. Their sums go over `along(Axis::dp_replicate)` afterwards.
  Group& shards() const { return *shards_; }
  /// Over whom an expert's weights are cut: dp_shard x cp.
  Group& expert_shards() const { return *expert_shards_; }
  /// Who holds the weights of this rank's stage once: dp_shard x cp x ep x tp. Norms are taken over it, then over `along(Axis::pp)`.
  Group& stage() const { return *stage_; }
  /// All ranks, with a communicator of its own and for another thread: a save in the background must not interleave with training.
  Group& files() const { return *files_; }

  bool leads() const { return rank() == 0; }
  Share share() const { return {mesh_.reader(rank()), mesh_.readers()}; }

  /// This rank gives up: see Group::end. For whoever catches the error that ends a run.
  void end(std::string_view why) const noexcept;

 private:
  Mesh mesh_;
  std::shared_ptr<Group> all_;
  std::array<std::shared_ptr<Group>, kAxes.size()> along_;
  std::shared_ptr<Group> data_, shards_, expert_shards_, stage_, files_;
};

}  // namespace kf
