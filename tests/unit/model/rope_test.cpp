#include <ATen/ATen.h>

#include "model/layer/rope.h"
#include "model/layer/visibility.h"

#include <catch2/catch.hpp>  // last: ATen has a CHECK of its own

using namespace kf;

namespace {

void check_frequencies(const RopeOptions& options, const std::vector<double>& expected) {
  const at::Tensor actual = rope_frequencies(options);
  REQUIRE(actual.numel() == static_cast<std::int64_t>(expected.size()));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(actual[static_cast<std::int64_t>(i)].item<double>() == Approx(expected[i]).epsilon(2e-6));
  }
}

std::vector<std::vector<int>> rows_of(const at::Tensor& mask) {
  std::vector<std::vector<int>> rows;
  for (const at::Tensor& row : mask.unbind(0)) {
    std::vector<int> seen;
    for (std::int64_t key = 0; key < row.size(0); ++key) {
      if (row[key].item<bool>()) {
        seen.push_back(static_cast<int>(key));
      }
    }
    rows.push_back(seen);
  }
  return rows;
}

}  // namespace

TEST_CASE("rope: llama3 stretches long wavelengths alone", "[rope]") {
  RopeOptions o;
  o.head_dim = 16;
  o.max_seq_len = 64;
  o.theta = 5e5;
  o.scaling = RopeOptions::Scaling::llama3;
  o.factor = 8;
  o.orig_len = 8192;
  check_frequencies(o, {1, .19392274, .037606031, .0072926647, .00052484616, 3.4281022e-5, 6.6478699e-6, 1.2891732e-6});
}

TEST_CASE("rope: yarn's ramp may begin at component 0", "[rope]") {
  RopeOptions o;
  o.head_dim = 16;
  o.max_seq_len = 64;
  o.scaling = RopeOptions::Scaling::yarn;
  o.factor = 8;
  o.orig_len = 128;
  check_frequencies(o, {1, .22399467, .041666667, .0039528471, .00125, .00039528471, .000125, 3.9528471e-5});
}

TEST_CASE("rope: yarn with equal borders divides by no zero", "[rope]") {
  RopeOptions o;
  o.head_dim = 16;
  o.max_seq_len = 64;
  o.scaling = RopeOptions::Scaling::yarn;
  o.factor = 4;
  o.orig_len = 2;
  o.beta_fast = o.beta_slow = 1;
  CHECK(rope_frequencies(o).isfinite().all().item<bool>());
}

TEST_CASE("rope: yarn's temperature is 0.1 mscale ln(factor) + 1", "[rope]") {
  CHECK(yarn_temperature(16, 1) == Approx(1.27726).epsilon(1e-5));
  CHECK(yarn_temperature(64, 1) == Approx(1.41589).epsilon(1e-5));
  CHECK(yarn_temperature(128, 1) == Approx(1.48520).epsilon(1e-5));
  CHECK(yarn_temperature(1, 1) == 1);
}

TEST_CASE("rope: a table grows with the positions asked for, and gives the same rotation", "[rope]") {
  RopeOptions o;
  o.head_dim = 8;
  o.max_seq_len = 4096;
  const Rope grown(o);
  const Rope fresh(o);
  const at::Tensor x = at::randn({1, 2, 3, 8});
  const at::Tensor small = grown.rotate(x, 0);
  const at::Tensor far = grown.rotate(x, 4093);
  CHECK(far.equal(fresh.rotate(x, 4093)));
  CHECK(small.equal(grown.rotate(x, 0)));
  CHECK_THROWS(grown.rotate(x, 4094));
}

TEST_CASE("visibility: a window of 3 and chunks of 4 see what they should", "[attention]") {
  const Visibility eight(0, 8, at::kCPU);
  CHECK(!eight.mask({}).defined());
  CHECK(eight.causal());
  CHECK(rows_of(eight.mask({Reach::Kind::local, 3})[0][0]) ==
        std::vector<std::vector<int>>{{0}, {0, 1}, {0, 1, 2}, {1, 2, 3}, {2, 3, 4}, {3, 4, 5}, {4, 5, 6}, {5, 6, 7}});
  CHECK(rows_of(eight.mask({Reach::Kind::chunk, 4})[0][0]) ==
        std::vector<std::vector<int>>{{0}, {0, 1}, {0, 1, 2}, {0, 1, 2, 3}, {4}, {4, 5}, {4, 5, 6}, {4, 5, 6, 7}});
  CHECK(!eight.mask({Reach::Kind::local, 8}).defined());  // the window holds all
}

TEST_CASE("visibility: positions and chunks count from the start of a document", "[attention][packing]") {
  const Visibility packed(at::tensor({5, 5, 5, 7, 7, 7, 7, 9}, at::kLong).unsqueeze(0));
  CHECK(packed.positions().equal(at::tensor({0, 1, 2, 0, 1, 2, 3, 0}, at::kLong).unsqueeze(0)));
  CHECK(rows_of(packed.mask({})[0][0]) == std::vector<std::vector<int>>{{0}, {0, 1}, {0, 1, 2}, {3}, {3, 4}, {3, 4, 5}, {3, 4, 5, 6}, {7}});
  CHECK(rows_of(packed.mask({Reach::Kind::chunk, 2})[0][0]) ==
        std::vector<std::vector<int>>{{0}, {0, 1}, {2}, {3}, {3, 4}, {5}, {5, 6}, {7}});
}

TEST_CASE("visibility: behind a cache a query sees the old keys inside its reach", "[attention][cache]") {
  const Visibility one(5, 1, at::kCPU);
  CHECK(!one.mask({}).defined());
  CHECK(!one.causal());
  CHECK(rows_of(one.mask({Reach::Kind::local, 2})[0][0]) == std::vector<std::vector<int>>{{4, 5}});
  const Visibility two(2, 2, at::kCPU);
  CHECK(rows_of(two.mask({})[0][0]) == std::vector<std::vector<int>>{{0, 1, 2}, {0, 1, 2, 3}});
  CHECK(two.positions().equal(at::tensor({2, 3}, at::kLong).unsqueeze(0)));
}
