#include "sweep/devices.h"

#include <catch2/catch.hpp>

using kf::sweep::devices_of_place;

TEST_CASE("sweep: trials at a time get GPUs of their own, as far as these go", "[sweep]") {
  const std::vector<std::string> four{"0", "1", "2", "3"};
  CHECK(devices_of_place(0, 1, four) == "0");
  CHECK(devices_of_place(3, 1, four) == "3");
  CHECK(devices_of_place(4, 1, four) == "0");
  CHECK(devices_of_place(1, 2, four) == "2,3");
  CHECK(devices_of_place(1, 3, four) == "3,0,1");
  CHECK(devices_of_place(0, 8, four) == "0,1,2,3");
  CHECK(devices_of_place(0, 1, {}).empty());
}
