#include "parallel/mesh.h"

#include "core/error.h"

namespace kf {
namespace {

constexpr std::int64_t kMostRanks = std::int64_t{1} << 31;

// a * b, or something above kMostRanks where it would be above it.
std::int64_t times(std::int64_t a, std::int64_t b) { return b > kMostRanks / a ? kMostRanks + 1 : a * b; }

std::string text_of(const PerAxis& degrees) {
  std::vector<std::string> texts;
  for (const Axis axis : kAxes) {
    texts.push_back(format("{} {}", name_of(axis), degrees[axis]));
  }
  return join(texts, ", ");
}

std::int64_t& of(PerAxis& numbers, Axis axis) {
  switch (axis) {
    case Axis::pp: return numbers.pp;
    case Axis::dp_replicate: return numbers.dp_replicate;
    case Axis::dp_shard: return numbers.dp_shard;
    case Axis::cp: return numbers.cp;
    case Axis::ep: return numbers.ep;
    case Axis::tp: return numbers.tp;
  }
  fail(Code::other, "no such axis");
}

}  // namespace

std::string_view name_of(Axis axis) {
  switch (axis) {
    case Axis::pp: return "pp";
    case Axis::dp_replicate: return "dp_replicate";
    case Axis::dp_shard: return "dp_shard";
    case Axis::cp: return "cp";
    case Axis::ep: return "ep";
    case Axis::tp: return "tp";
  }
  return "";
}

std::int64_t PerAxis::operator[](Axis axis) const {
  PerAxis copy = *this;
  return of(copy, axis);
}

Mesh::Mesh(const PerAxis& degrees) : degrees_(degrees) {
  for (const Axis axis : kAxes) {
    KF_CHECK(degrees[axis] >= 1, Code::config, "distributed.{} is {}, must be at least 1", name_of(axis), degrees[axis]);
    KF_CHECK(degrees[axis] <= kMostRanks, Code::config, "distributed.{} is {}, above the largest world ({})", name_of(axis), degrees[axis],
             kMostRanks);
    size_ = axis == Axis::ep ? size_ : times(size_, degrees[axis]);
  }
  KF_CHECK(size_ <= kMostRanks, Code::config, "more than {} ranks: {}", kMostRanks, text_of(degrees));
  KF_CHECK(degrees.dp_shard * degrees.cp % degrees.ep == 0, Code::config,
           "distributed.ep ({}) must divide dp_shard * cp ({} * {}): experts are spread over the ranks that share out the data", degrees.ep,
           degrees.dp_shard, degrees.cp);
}

Mesh Mesh::of_world(PerAxis degrees, std::int64_t world) {
  if (degrees.dp_shard == -1) {
    degrees.dp_shard = 1;
    const std::int64_t others = Mesh(PerAxis{degrees.pp, degrees.dp_replicate, 1, degrees.cp, 1, degrees.tp}).size();
    KF_CHECK(world % others == 0, Code::config, "{} ranks are not divisible by pp * dp_replicate * cp * tp ({})", world, others);
    degrees.dp_shard = world / others;
  }
  Mesh mesh(degrees);
  KF_CHECK(mesh.size() == world, Code::config, "the degrees ask for {} ranks, the world has {}: {}", mesh.size(), world, text_of(degrees));
  return mesh;
}

void Mesh::check_rank(std::int64_t rank) const {
  KF_CHECK(rank >= 0 && rank < size_, Code::communication, "rank {} of a world of {}", rank, size_);
}

PerAxis Mesh::coordinates(std::int64_t rank) const {
  check_rank(rank);
  PerAxis at;
  for (const Axis axis : {Axis::tp, Axis::cp, Axis::dp_shard, Axis::dp_replicate, Axis::pp}) {
    of(at, axis) = rank % degrees_[axis];
    rank /= degrees_[axis];
  }
  at.ep = (at.dp_shard * degrees_.cp + at.cp) % degrees_.ep;
  return at;
}

std::int64_t Mesh::rank_at(const PerAxis& at) const {
  std::int64_t rank = 0;
  for (const Axis axis : {Axis::pp, Axis::dp_replicate, Axis::dp_shard, Axis::cp, Axis::tp}) {
    KF_CHECK(at[axis] >= 0 && at[axis] < degrees_[axis], Code::communication, "coordinate {} of {} along {}", at[axis], degrees_[axis],
             name_of(axis));
    rank = rank * degrees_[axis] + at[axis];
  }
  return rank;
}

std::vector<std::int64_t> Mesh::ranks_along(Axis axis, std::int64_t rank) const {
  PerAxis at = coordinates(rank);
  std::vector<std::int64_t> ranks;
  if (axis == Axis::ep) {
    const std::vector<std::int64_t> all = shard_ranks(rank);
    const auto first = all.begin() + (at.dp_shard * degrees_.cp + at.cp - at.ep);
    return {first, first + degrees_.ep};
  }
  for (std::int64_t i = 0; i < degrees_[axis]; ++i) {
    of(at, axis) = i;
    ranks.push_back(rank_at(at));
  }
  return ranks;
}

std::vector<std::int64_t> Mesh::data_ranks(std::int64_t rank) const {
  std::vector<std::int64_t> ranks;
  for (const std::int64_t replica : ranks_along(Axis::dp_replicate, rank)) {
    // The replica's ranks begin where dp_shard and cp are 0, so the list ascends whichever of them `replica` is.
    const std::vector<std::int64_t> its = shard_ranks(replica);
    ranks.insert(ranks.end(), its.begin(), its.end());
  }
  return ranks;
}

std::vector<std::int64_t> Mesh::shard_ranks(std::int64_t rank) const {
  std::vector<std::int64_t> ranks;
  for (const std::int64_t shard : ranks_along(Axis::dp_shard, rank)) {
    const std::vector<std::int64_t> its = ranks_along(Axis::cp, shard);
    ranks.insert(ranks.end(), its.begin(), its.end());
  }
  return ranks;
}

std::vector<std::int64_t> Mesh::expert_shard_ranks(std::int64_t rank) const {
  std::vector<std::int64_t> ranks;
  const std::vector<std::int64_t> all = shard_ranks(rank);
  for (auto i = static_cast<std::size_t>(coordinate(rank, Axis::ep)); i < all.size(); i += static_cast<std::size_t>(degrees_.ep)) {
    ranks.push_back(all[i]);
  }
  return ranks;
}

std::int64_t Mesh::reader(std::int64_t rank) const {
  const PerAxis at = coordinates(rank);
  return at.dp_replicate * degrees_.dp_shard + at.dp_shard;
}

}  // namespace kf
