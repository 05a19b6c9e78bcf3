#include "report/read/settings.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "config/schema/config.h"
#include "config/show/emit.h"
#include "core/error.h"
#include "support/temp_dir.h"

using Catch::Matchers::Contains;
using kf::report::changed_settings;
using kf::report::compare_settings;
using kf::report::settings_of;
using kf::test::TempDir;

TEST_CASE("report: a job of defaults has no changed setting", "[report]") {
  const TempDir dir;
  kf::config::Config config;
  dir.write("job.toml", kf::config::to_toml(config));
  CHECK(changed_settings(settings_of(dir.path())).empty());
  config.optimizer.lr = 0.125;
  config.run.tags = {"a", "b"};
  dir.write("job.toml", kf::config::to_toml(config));
  const auto changed = changed_settings(settings_of(dir.path()));
  REQUIRE(changed.size() == 2);
  CHECK(changed[0].first == "run.tags");
  CHECK(changed[1].first == "optimizer.lr");
  CHECK(to_text(changed[1].second) == "0.125");
}

TEST_CASE("report: settings stand side by side where they differ", "[report]") {
  const TempDir dir;
  dir.write("a/job.toml", "[optimizer]\nlr = 0.1\nname = \"adamw\"\n[scheduler.half]\nfactor = 2\n");
  dir.write("b/job.toml", "[optimizer]\nlr = 0.2\nname = \"adamw\"\n[train]\nseed = 3\n");
  const auto rows = compare_settings({settings_of(dir / "a"), settings_of(dir / "b")});
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].key == "optimizer.lr");
  CHECK(rows[1].key == "scheduler.half.factor");
  CHECK(!rows[1].values[1].has_value());
  CHECK(rows[2].key == "train.seed");
  CHECK(!rows[2].values[0].has_value());
  CHECK(compare_settings({settings_of(dir / "a"), settings_of(dir / "b")}, true).size() == 4);
  dir.write("a/job.toml", "= 3");
  CHECK_THROWS_WITH(settings_of(dir / "a"), Contains("job.toml"));
}
