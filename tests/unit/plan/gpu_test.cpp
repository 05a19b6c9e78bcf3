// The accelerators of the table, and those of a file.

#include "plan/gpu.h"

#include "core/error.h"
#include "support/temp_dir.h"

#include <catch2/catch.hpp>

namespace kf::plan::test {
namespace {

using Catch::Contains;

std::string refusal(const std::string& toml) {
  const kf::test::TempDir folder;
  folder.write("gpu.toml", toml);
  try {
    gpu_named((folder / "gpu.toml").string());
  } catch (const Error& error) {
    CHECK(error.code() == Code::config);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("plan: the table knows four accelerators, each by any spelling", "[plan]") {
  CHECK(gpu_names() == std::vector<std::string>{"a100", "b200", "h100", "h200"});
  for (const std::string& name : gpu_names()) {
    const Gpu gpu = gpu_named(name);
    CAPTURE(name);
    CHECK(gpu.name == name);
    CHECK(gpu.fp32 < gpu.tf32);
    CHECK(gpu.tf32 < gpu.bf16);
    CHECK(gpu.fp8 >= gpu.bf16);
    CHECK(gpu.product_share > 0.5);
    CHECK(gpu.product_share < 1);
    CHECK(gpu.node_bandwidth > gpu.network_bandwidth);
  }
  CHECK(gpu_named("H100").bf16 == 989e12);
}

TEST_CASE("plan: an unknown accelerator is refused with those that are known", "[plan]") {
  CHECK_THROWS_WITH(gpu_named("h10"), Contains("a100, b200, h100, h200") && Contains("did you mean h100"));
}

TEST_CASE("plan: a file describes an accelerator, by itself or like another one", "[plan]") {
  const kf::test::TempDir folder;
  folder.write("slow.toml", "like = \"h100\"\nnetwork_bandwidth = 25e9\nnode = 4\n");
  const Gpu slow = gpu_named((folder / "slow.toml").string());
  CHECK(slow.name == "slow");
  CHECK(slow.node == 4);
  CHECK(slow.network_bandwidth == 25e9);
  CHECK(slow.bf16 == 989e12);
  folder.write("own.toml",
               "name = \"X1\"\nbf16_flops = 1e15\nmemory = 64_000_000_000\nmemory_bandwidth = 3e12\nnode_bandwidth = 4e11\n"
               "network_bandwidth = 5e10\n");
  const Gpu own = gpu_named((folder / "own.toml").string());
  CHECK(own.name == "X1");
  CHECK(own.fp8 == own.bf16);
  CHECK(own.tf32 == own.bf16 / 2);
}

TEST_CASE("plan: every fault of an accelerator's file is said, with its line", "[plan]") {
  const std::string all = refusal("like = \"v100\"\nbf16_flop = 1\nmemory = -3\nnode = 0\nproduct_share = 1.5\n");
  CHECK_THAT(all, Contains("gpu.toml:1") && Contains("like ('v100') must be one of a100, b200, h100, h200"));
  CHECK_THAT(all, Contains("gpu.toml:2") && Contains("unknown key bf16_flop; did you mean bf16_flops?"));
  CHECK_THAT(all, Contains("gpu.toml:3") && Contains("memory (-3) must be a number above 0"));
  CHECK_THAT(all, Contains("gpu.toml:4") && Contains("node (0) must be a number of accelerators"));
  CHECK_THAT(all, Contains("gpu.toml:5") && Contains("product_share (1.5) must be at most 1"));
  CHECK_THAT(refusal("bf16_flops = 1e15\n"), Contains("memory is missing") && Contains("network_bandwidth is missing"));
  CHECK_THAT(refusal("bf16_flops = \n"), Contains("gpu.toml:1"));
}

}  // namespace kf::plan::test
