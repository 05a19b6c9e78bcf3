// The own tables of parts, checked by the fields that the part declares.

#include "job.h"

namespace kf::test {

TEST_CASE("config: a part's own table is checked like any section, defaults filled in", "[config]") {
  const config::Config c =
      good(load_toml("[scheduler]\nname = \"inverse_sqrt\"\n[scheduler.inverse_sqrt]\nshift = 4\n[mlp.tanh_mlp]\nmode = \"hard\"\n"));
  const config::PartOptions& schedule = c.parts.at("scheduler.inverse_sqrt");
  CHECK(*schedule.find("shift") == config::Node(std::int64_t{4}));
  CHECK(*schedule.find("power") == config::Node(0.5));
  CHECK(*c.parts.at("mlp.tanh_mlp").find("mode") == config::Node(std::string("hard")));
}

TEST_CASE("config: a part's fields are reached from the command line", "[config]") {
  const config::Config c =
      good(load_cli({"--scheduler.name=inverse_sqrt", "--scheduler.inverse_sqrt.shift=1e2", "--mlp.tanh_mlp.widths=[1, 2.5]"}));
  CHECK(*c.parts.at("scheduler.inverse_sqrt").find("shift") == config::Node(std::int64_t{100}));
  CHECK(c.parts.at("mlp.tanh_mlp").find("widths")->array()->size() == 2);
}

TEST_CASE("config: mistakes in a part's table are told like any other", "[config]") {
  CHECK(problem(load_toml("[scheduler.inverse_sqrt]\nshift = 1\npower = 2.0\n")) == "scheduler.inverse_sqrt.power (2) must be in [0, 1]");
  CHECK(problem(load_toml("[scheduler.inverse_sqrt]\nshift = 1\nrate = 0\n")) == "scheduler.inverse_sqrt.rate (0) must be in (0, 1)");
  CHECK(problem(load_toml("[scheduler.inverse_sqrt]\nshift = 1\nrate = 1.0\n")) == "scheduler.inverse_sqrt.rate (1) must be in (0, 1)");
  CHECK(problem(load_toml("[scheduler.inverse_sqrt]\nshift = 1\npowr = 0.5\n")) ==
        "[scheduler.inverse_sqrt] unknown key 'powr'; did you mean 'power'?");
  CHECK(problem(load_toml("[scheduler.inverse_sqrt]\nshift = \"1\"\n")).find("is not an integer") != std::string::npos);
  CHECK(problem(load_toml("[mlp.tanh_mlp]\nmode = \"sof\"\n")) ==
        "mlp.tanh_mlp.mode ('sof') must be one of soft, hard; did you mean 'soft'?");
  CHECK(
      problem(load_toml("[mlp.tanh]\nmode = \"soft\"\n")).find("[mlp.tanh] is the table of no registered mlp; did you mean 'tanh_mlp'?") ==
      0);
  CHECK(problem(load_toml("[optimizer.adamw]\nalpha = 1\n")) == "[optimizer.adamw] unknown key 'alpha'; known here: nothing");
}

TEST_CASE("config: a field that must be given is asked for when its part is used", "[config]") {
  good(load_toml(""));
  CHECK(problem(load_toml("[scheduler]\nname = \"inverse_sqrt\"\n")) == "[scheduler.inverse_sqrt] must give 'shift' (integer)");
  CHECK(problem(load_toml("[scheduler.inverse_sqrt]\npower = 0.1\n")) == "[scheduler.inverse_sqrt] must give 'shift' (integer)");
}

}  // namespace kf::test
