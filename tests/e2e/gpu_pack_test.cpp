// The folder that is sent to a machine with a GPU: small enough, complete, and its script does what it says. Here the CPU stands in.

#include <catch2/catch.hpp>

#include <filesystem>

#include "support/process.h"
#include "support/temp_dir.h"

namespace fs = std::filesystem;
using namespace kf::test;
using Catch::Matchers::Contains;

TEST_CASE("gpu: what tests/gpu/pack makes runs in another folder, and every check of its script is one", "[gpu]") {
  const fs::path build = fs::path(KF_HOST).parent_path();
  if (std::string(KF_BUILD_TYPE) != "Release" || !fs::exists(build / "libkf-cuda.so")) {
    WARN("skipped: only a release build with the GPU module is packed");
    return;
  }
  const TempDir temp;
  const fs::path folder = temp / "a pack";
  const Finished packed = run({"bash", KF_SOURCE_DIR "/tests/gpu/pack", folder.string(), build.filename().string()});
  CAPTURE(packed.out, packed.err);
  REQUIRE(packed.status == 0);
  CHECK_THAT(packed.out, Contains(" MB in "));
  Options options;
  options.timeout = std::chrono::seconds(400);
  options.env = {{"KF_TORCH_DIR", KF_TORCH_DIR}};
  const Finished ran = run({"bash", (folder / "run").string(), "--device=cpu", "--quick"}, options);
  CAPTURE(ran.out, ran.err);
  CHECK(ran.status == 0);
  CHECK_THAT(ran.out, Contains("experts in fp32: 6 steps, worst difference 0 "));
  CHECK_THAT(ran.out, Contains("a stop and a resume against a straight run: 6 steps, worst difference 0 "));
  CHECK_THAT(ran.out, Contains("5 passed, 0 failed"));

  // A check that cannot hold fails, and so does the script.
  temp.write("a pack/toy.toml", "[model]\nno_such_key = 1\n");
  const Finished broken = run({"bash", (folder / "run").string(), "--device=cpu", "--quick"}, options);
  CHECK(broken.status == 1);
  CHECK_THAT(broken.out, Contains("FAIL  cpu_fp32 ended with status 2"));
  CHECK(run({"bash", (folder / "run").string(), "--device=tpu"}, options).status == 2);
}
