#include "plan/links.h"

#include <algorithm>

namespace kf::plan {
namespace {

double real(std::int64_t n) { return static_cast<double>(n); }

/// Of a ring: between machines one hop each, the others inside.
double hops(const Gpu& gpu, const Reach& reach) {
  const double between = reach.nodes > 1 ? real(reach.nodes - 1) : 0;
  return between * gpu.network_latency + (real(reach.ranks - 1) - between) * gpu.node_latency;
}

}  // namespace

Reach reach_of(const std::vector<std::int64_t>& ranks, std::int64_t node) {
  Reach out;
  out.ranks = static_cast<std::int64_t>(ranks.size());
  out.nodes = 0;
  out.per_node = out.ranks;
  for (std::size_t i = 0; i < ranks.size();) {
    const std::int64_t machine = ranks[i] / node;
    const std::size_t first = i;
    while (i < ranks.size() && ranks[i] / node == machine) {
      ++i;
    }
    ++out.nodes;
    out.per_node = std::min(out.per_node, static_cast<std::int64_t>(i - first));
  }
  return out;
}

double ring_bandwidth(const Gpu& gpu, const Reach& reach) {
  const double inside = kNodeShare * gpu.node_bandwidth;
  const double between = kNetworkShare * gpu.network_bandwidth * real(reach.per_node);
  if (reach.nodes == 1) {
    return inside;
  }
  return reach.per_node == 1 ? between : std::min(inside, between);
}

double ring_seconds(const Gpu& gpu, const Reach& reach, double bytes) {
  if (reach.ranks <= 1 || bytes <= 0) {
    return 0;
  }
  const double n = real(reach.ranks);
  return (n - 1) / n * bytes / ring_bandwidth(gpu, reach) + hops(gpu, reach);
}

double sum_seconds(const Gpu& gpu, const Reach& reach, double bytes) { return 2 * ring_seconds(gpu, reach, bytes); }

double exchange_seconds(const Gpu& gpu, const Reach& reach, double bytes) {
  if (reach.ranks <= 1 || bytes <= 0) {
    return 0;
  }
  const double n = real(reach.ranks), near = real(reach.per_node);
  const double inside = (near - 1) / n * bytes / (kNodeShare * gpu.node_bandwidth);
  const double between = (n - near) / n * bytes / (kNetworkShare * gpu.network_bandwidth);
  const double latency = reach.nodes > 1 ? gpu.network_latency : gpu.node_latency;
  return std::max(inside, between) + latency;
}

double send_seconds(const Gpu& gpu, const Reach& reach, double bytes) {
  if (reach.ranks <= 1 || bytes <= 0) {
    return 0;
  }
  return reach.nodes > 1 ? bytes / (kNetworkShare * gpu.network_bandwidth) + gpu.network_latency
                         : bytes / (kNodeShare * gpu.node_bandwidth) + gpu.node_latency;
}

}  // namespace kf::plan
