#pragma once
// How far the ranks of a group are apart, and how long they take to exchange something.

#include <cstdint>
#include <string>
#include <vector>

#include "plan/gpu.h"

namespace kf::plan {

/// Where the ranks of a group are: rank r is on machine r / gpu.node.
struct Reach {
  std::int64_t ranks = 1;
  std::int64_t nodes = 1;     // machines
  std::int64_t per_node = 1;  // ranks of the group on one of them, the fewest

  /// "", "node" or "network": the slowest link between two of them.
  std::string link() const { return nodes > 1 ? "network" : ranks > 1 ? "node" : ""; }
};

/// Of these ranks, ascending, on machines of `node` ranks.
Reach reach_of(const std::vector<std::int64_t>& ranks, std::int64_t node);

/// Bytes a second that a ring of these ranks moves: that of a machine's links; between machines what the adapters of the group's ranks on a
/// machine carry together, where that is less. Of both, protocols leave a share (kNodeShare, kNetworkShare).
double ring_bandwidth(const Gpu& gpu, const Reach& reach);

/// Share of a link that messages get. Inside a machine: NCCL's own bound for the A100, 235 of 300 GB/s (src/graph/tuning.cc); between
/// machines an assumption.
inline constexpr double kNodeShare = 235.0 / 300, kNetworkShare = 0.9;

/// A gather of `bytes` in all, or the sum of `bytes` of which each rank keeps its part, around a ring: (n - 1) / n of the bytes, and n - 1
/// hops.
double ring_seconds(const Gpu& gpu, const Reach& reach, double bytes);
/// A sum that all ranks get: both, one after the other.
double sum_seconds(const Gpu& gpu, const Reach& reach, double bytes);
/// Every rank sends `bytes`, an equal share to each other rank and itself.
double exchange_seconds(const Gpu& gpu, const Reach& reach, double bytes);
/// To one other rank.
double send_seconds(const Gpu& gpu, const Reach& reach, double bytes);

}  // namespace kf::plan
