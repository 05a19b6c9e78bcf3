#include "report/serve/steer.h"

#include <catch2/catch.hpp>

#include <string>

#include "core/error.h"
#include "support/temp_dir.h"

using namespace kf::report;

TEST_CASE("steer: a wish is one of four, and a factor is a number", "[report]") {
  CHECK(steering_chunk("save", "") == "ctx:request_save()");
  CHECK(steering_chunk("eval", "") == "ctx:request_eval()");
  CHECK(steering_chunk("stop", "os.exit()") == "ctx:stop('asked for on the page of kf-host serve')");
  CHECK(steering_chunk("lr", "0.5") == "ctx:set_lr_scale(0.5)");
  for (const std::string value : {"", "x", "0", "-1", "nan", "inf", "1e9", "0.5)os.exit(", "0.5 ", " 0.5"}) {
    CAPTURE(value);
    CHECK_FALSE(steering_chunk("lr", value));
  }
  CHECK_FALSE(steering_chunk("ctx:stop()", ""));
  CHECK_FALSE(steering_chunk("", ""));
}

TEST_CASE("steer: a folder in which nobody trains says so", "[report]") {
  const kf::test::TempDir dir;
  CHECK_THROWS_AS(steer(dir.path(), "ctx:stop()"), kf::Error);
}
