#pragma once
// Which ranks act together: arithmetic alone, no torch and no communication.

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace kf {

/// Ways of spreading work. pp: layers; dp_replicate, dp_shard: sequences (weights lie whole on each, in parts over dp_shard); cp: the
/// tokens of a sequence; ep: experts, and sequences and weights as over dp_shard; tp: the numbers of a layer.
enum class Axis { pp, dp_replicate, dp_shard, cp, ep, tp };
inline constexpr std::array<Axis, 6> kAxes{Axis::pp, Axis::dp_replicate, Axis::dp_shard, Axis::cp, Axis::ep, Axis::tp};
/// "dp_shard", as in the settings.
std::string_view name_of(Axis axis);

/// A number for each axis: degrees, or the coordinates of a rank.
struct PerAxis {
  std::int64_t pp = 0, dp_replicate = 0, dp_shard = 0, cp = 0, ep = 0, tp = 0;
  std::int64_t operator[](Axis axis) const;
  bool operator==(const PerAxis&) const = default;

  /// Of all of them; the largest number where it would be larger.
  std::int64_t product() const;
  /// These degrees on `world` ranks: a dp_shard of -1 is what the others leave; at least 1, also where they do not fit.
  PerAxis on_world(std::int64_t world) const;
};

/// The ranks of the world as a box, the last axis fastest. So the ranks of a tp group are neighbours (of one machine), and stages of a
/// pipeline are far apart. The degrees' product is the number of ranks, as in KempnerForge; but ranks along ep are not there for the
/// experts alone: they read other sequences and hold other parts of the weights, so that nothing is computed twice.
class Mesh {
 public:
  /// All degrees 1.
  Mesh() : Mesh(PerAxis{1, 1, 1, 1, 1, 1}) {}
  /// Throws Code::config for a degree below 1 and more than 2^31 ranks.
  explicit Mesh(const PerAxis& degrees);
  /// Of degrees.on_world(world). Throws Code::config where they do not make up the world.
  static Mesh of_world(const PerAxis& degrees, std::int64_t world);

  std::int64_t size() const { return size_; }
  const PerAxis& degrees() const { return degrees_; }
  std::int64_t degree(Axis axis) const { return degrees_[axis]; }
  PerAxis coordinates(std::int64_t rank) const;
  std::int64_t coordinate(std::int64_t rank, Axis axis) const { return coordinates(rank)[axis]; }
  /// The inverse of `coordinates`.
  std::int64_t rank_at(const PerAxis& at) const;

  // Groups that `rank` is of: ranks of the world, ascending. Every one of them partitions the world.

  /// Those that differ along this axis alone; the place in the list is the coordinate.
  std::vector<std::int64_t> ranks_along(Axis axis, std::int64_t rank) const;
  /// dp_replicate x dp_shard x cp x ep: who has other tokens of the same batch and the same layers, and so shares a loss.
  std::vector<std::int64_t> data_ranks(std::int64_t rank) const;
  /// dp_shard x cp x ep: over whom a weight is cut (cp ranks hold the same weights, so they take part).
  std::vector<std::int64_t> shard_ranks(std::int64_t rank) const;
  /// dp_shard x cp, those that hold the same experts: over whom an expert's weight is cut.
  std::vector<std::int64_t> expert_shard_ranks(std::int64_t rank) const;

  /// dp_shard x cp x ep x tp: who holds the weights of a stage of a pipeline once.
  std::vector<std::int64_t> stage_ranks(std::int64_t rank) const;

  /// Readers of data: dp_replicate x dp_shard x ep. (cp ranks read the same sequences and take their tokens of them, tp and pp ranks all.)
  std::int64_t readers() const { return degrees_.dp_replicate * degrees_.dp_shard * degrees_.ep; }
  std::int64_t reader(std::int64_t rank) const;

 private:
  void check_rank(std::int64_t rank) const;
  /// Those that differ from `rank` along these axes alone, which are in the order of kAxes.
  std::vector<std::int64_t> ranks_over(const std::vector<Axis>& axes, std::int64_t rank) const;

  PerAxis degrees_;
  std::int64_t size_ = 1;
};

}  // namespace kf
