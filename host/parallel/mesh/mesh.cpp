#include "parallel/mesh/mesh.h"

#include <algorithm>
#include <limits>

#include "core/error.h"

namespace kf {
namespace {

constexpr std::int64_t kMostRanks = std::int64_t{1} << 31;

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

std::int64_t PerAxis::product() const {
  std::int64_t product = 1;
  for (const Axis axis : kAxes) {
    if (__builtin_mul_overflow(product, (*this)[axis], &product)) {
      return std::numeric_limits<std::int64_t>::max();
    }
  }
  return product;
}

PerAxis PerAxis::on_world(std::int64_t world) const {
  PerAxis degrees = *this;
  if (dp_shard == -1) {
    degrees.dp_shard = 1;
    degrees.dp_shard = std::max<std::int64_t>(1, world / std::max<std::int64_t>(1, degrees.product()));
  }
  return degrees;
}

Mesh::Mesh(const PerAxis& degrees) : degrees_(degrees), size_(degrees.product()) {
  for (const Axis axis : kAxes) {
    KF_CHECK(degrees[axis] >= 1, Code::config, "distributed.{} is {}, must be at least 1", name_of(axis), degrees[axis]);
  }
  KF_CHECK(size_ <= kMostRanks, Code::config, "more than {} ranks: {}", kMostRanks, text_of(degrees));
}

Mesh Mesh::of_world(const PerAxis& degrees, std::int64_t world) {
  Mesh mesh(degrees.on_world(world));
  KF_CHECK(mesh.size() == world, Code::config, "the degrees ask for {} ranks, the world has {}: {}", mesh.size(), world,
           text_of(mesh.degrees()));
  return mesh;
}

void Mesh::check_rank(std::int64_t rank) const {
  KF_CHECK(rank >= 0 && rank < size_, Code::communication, "rank {} of a world of {}", rank, size_);
}

PerAxis Mesh::coordinates(std::int64_t rank) const {
  check_rank(rank);
  PerAxis at;
  for (auto axis = kAxes.rbegin(); axis != kAxes.rend(); ++axis) {
    of(at, *axis) = rank % degrees_[*axis];
    rank /= degrees_[*axis];
  }
  return at;
}

std::int64_t Mesh::rank_at(const PerAxis& at) const {
  std::int64_t rank = 0;
  for (const Axis axis : kAxes) {
    KF_CHECK(at[axis] >= 0 && at[axis] < degrees_[axis], Code::communication, "coordinate {} of {} along {}", at[axis], degrees_[axis],
             name_of(axis));
    rank = rank * degrees_[axis] + at[axis];
  }
  return rank;
}

std::vector<std::int64_t> Mesh::ranks_over(const std::vector<Axis>& axes, std::int64_t rank) const {
  std::vector<PerAxis> places{coordinates(rank)};
  for (const Axis axis : axes) {
    std::vector<PerAxis> more;
    for (PerAxis at : places) {
      for (std::int64_t i = 0; i < degrees_[axis]; ++i) {
        of(at, axis) = i;
        more.push_back(at);
      }
    }
    places = std::move(more);
  }
  std::vector<std::int64_t> ranks;
  for (const PerAxis& at : places) {
    ranks.push_back(rank_at(at));
  }
  return ranks;
}

std::vector<std::int64_t> Mesh::ranks_along(Axis axis, std::int64_t rank) const { return ranks_over({axis}, rank); }

std::vector<std::int64_t> Mesh::data_ranks(std::int64_t rank) const {
  return ranks_over({Axis::dp_replicate, Axis::dp_shard, Axis::cp, Axis::ep}, rank);
}

std::vector<std::int64_t> Mesh::shard_ranks(std::int64_t rank) const { return ranks_over({Axis::dp_shard, Axis::cp, Axis::ep}, rank); }

std::vector<std::int64_t> Mesh::expert_shard_ranks(std::int64_t rank) const { return ranks_over({Axis::dp_shard, Axis::cp}, rank); }

std::vector<std::int64_t> Mesh::stage_ranks(std::int64_t rank) const {
  return ranks_over({Axis::dp_shard, Axis::cp, Axis::ep, Axis::tp}, rank);
}

std::int64_t Mesh::reader(std::int64_t rank) const {
  const PerAxis at = coordinates(rank);
  return (at.dp_replicate * degrees_.dp_shard + at.dp_shard) * degrees_.ep + at.ep;
}

}  // namespace kf
