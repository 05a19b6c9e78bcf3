#include <catch2/catch.hpp>

#include "core/error.h"
#include "data/hub/cache.h"
#include "unit/data/hub/server.h"

using namespace kf;
using Catch::Matchers::Contains;

TEST_CASE("hub: names and paths that leave their folder are refused", "[hub]") {
  for (const char* name : {"", "a/b/c", "../x", "a/..", "a b", "a//b", ".a"}) {
    CAPTURE(name);
    CHECK_THROWS_WITH(hub::RepoCache(name, "cache"), Contains("is no name of a data set"));
  }
  for (const char* path : {"", "/etc", "a/../b", "..", "a//b", "a\\b", "./a"}) {
    CAPTURE(path);
    CHECK_THROWS_WITH(hub::check_repo_path(path), Contains("is no path of a repository"));
  }
  CHECK(hub::RepoCache("org/set", "cache").folder() == "cache/datasets--org--set");
}

TEST_CASE("hub: places and the token come from the environment, as for Python's tools", "[hub]") {
  const test::TempDir dir;
  const test::Environment environment({{"HF_HOME", dir.path().string()}, {"HF_ENDPOINT", "http://mirror/"}});
  CHECK(hub::home() == dir.path());
  CHECK(hub::endpoint() == "http://mirror");
  CHECK(hub::token().empty());
  dir.write("token", "from-file\n");
  CHECK(hub::token() == "from-file");
  const test::Environment token({{"HF_TOKEN", "from-environment"}});
  CHECK(hub::token() == "from-environment");
  CHECK(hub::RepoCache("a/b").folder() == dir / "hub/datasets--a--b");
  const test::Environment cache({{"HF_HUB_CACHE", "/elsewhere"}});
  CHECK(hub::RepoCache("a/b").folder() == "/elsewhere/datasets--a--b");
}
