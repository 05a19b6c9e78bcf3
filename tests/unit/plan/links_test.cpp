// Where the ranks of a group are, and what a message between them takes.

#include "plan/links.h"

#include <catch2/catch.hpp>

namespace kf::plan::test {
namespace {

/// Links whose shares come out round.
Gpu round_gpu() {
  Gpu gpu;
  gpu.node_bandwidth = 100e9 / kNodeShare;
  gpu.network_bandwidth = 10e9 / kNetworkShare;
  gpu.node_latency = 1e-6;
  gpu.network_latency = 10e-6;
  return gpu;
}

}  // namespace

TEST_CASE("plan: a group's reach is the machines that its ranks are on", "[plan]") {
  const Reach tp = reach_of({8, 9, 10, 11}, 8);
  CHECK(tp.ranks == 4);
  CHECK(tp.nodes == 1);
  CHECK(tp.link() == "node");
  const Reach far = reach_of({0, 8, 16, 24}, 8);
  CHECK(far.nodes == 4);
  CHECK(far.per_node == 1);
  CHECK(far.link() == "network");
  const Reach both = reach_of({0, 4, 8, 12}, 8);
  CHECK(both.nodes == 2);
  CHECK(both.per_node == 2);
  CHECK(reach_of({3}, 8).link().empty());
}

TEST_CASE("plan: a ring moves all but a rank's own part, over the slowest of its links", "[plan]") {
  const Gpu gpu = round_gpu();
  CHECK(ring_seconds(gpu, reach_of({0, 1, 2, 3}, 8), 4e9) == Approx(3e9 / 100e9 + 3e-6));
  // One rank a machine: its own adapter.
  CHECK(ring_seconds(gpu, reach_of({0, 8, 16, 24}, 8), 4e9) == Approx(3e9 / 10e9 + 30e-6));
  // Two ranks a machine share its adapters' work; one hop between the two machines, two inside.
  CHECK(ring_seconds(gpu, reach_of({0, 4, 8, 12}, 8), 4e9) == Approx(3e9 / 20e9 + 10e-6 + 2e-6));
  // Sixteen of a machine would be faster than what is inside of it.
  CHECK(ring_bandwidth(gpu, {32, 2, 16}) == Approx(100e9));
  CHECK(sum_seconds(gpu, reach_of({0, 1}, 8), 2e9) == Approx(2 * (1e9 / 100e9 + 1e-6)));
  CHECK(ring_seconds(gpu, reach_of({5}, 8), 4e9) == 0);
  CHECK(ring_seconds(gpu, reach_of({0, 1}, 8), 0) == 0);
}

TEST_CASE("plan: an exchange takes as long as the slower of what stays inside a machine and what leaves it", "[plan]") {
  const Gpu gpu = round_gpu();
  CHECK(exchange_seconds(gpu, reach_of({0, 1, 2, 3}, 4), 4e9) == Approx(3e9 / 100e9 + 1e-6));
  // Of four equal shares one goes to the neighbour, two leave the machine.
  CHECK(exchange_seconds(gpu, reach_of({0, 1, 2, 3}, 2), 4e9) == Approx(2e9 / 10e9 + 10e-6));
  CHECK(send_seconds(gpu, reach_of({0, 8}, 8), 1e9) == Approx(0.1 + 10e-6));
}

}  // namespace kf::plan::test
