#include "core/visible_gpus.h"

#include <catch2/catch.hpp>

#include <cstdlib>

#include "core/network_disk.h"
#include "support/temp_dir.h"

using namespace kf;

namespace {

/// CUDA_VISIBLE_DEVICES as long as it lives; null: not set.
struct Visible {
  explicit Visible(const char* words) : earlier(std::getenv("CUDA_VISIBLE_DEVICES")) { set(words); }
  ~Visible() { set(earlier); }
  static void set(const char* words) {
    if (words == nullptr) {
      ::unsetenv("CUDA_VISIBLE_DEVICES");
    } else {
      ::setenv("CUDA_VISIBLE_DEVICES", words, 1);
    }
  }
  const char* earlier;
};

using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("gpus: the driver's device nodes are counted, and CUDA_VISIBLE_DEVICES chooses", "[core]") {
  const test::TempDir devices;
  for (const char* name : {"nvidia0", "nvidia1", "nvidia2", "nvidiactl", "nvidia-uvm", "null"}) {
    devices.write(name, "");
  }
  const auto seen = [&](const char* words) {
    const Visible visible(words);
    return visible_gpus(devices.path().string());
  };
  CHECK(seen(nullptr) == Words{"0", "1", "2"});
  CHECK(seen("2,0") == Words{"2", "0"});
  CHECK(seen("GPU-1a") == Words{"GPU-1a"});
  CHECK(seen("1,-1,0") == Words{"1"});  // as CUDA reads it
  CHECK(seen("").empty());
  const Visible none(nullptr);
  CHECK(visible_gpus((devices.path() / "nothing").string()).empty());
}

TEST_CASE("disks: a folder of this machine is on none that others share, also where it is not there yet", "[core]") {
  const test::TempDir folder;
  CHECK(network_disk(folder.path()).empty());
  CHECK(network_disk(folder.path() / "not/there/yet").empty());
}
