// The own tables of parts, checked by the fields that the part declares.

#include "config/show/explain.h"
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

namespace {

/// A job whose first phase is the registered "warm", which gives `key` = `value`, as a script's fourth line does.
config::Loaded load_warm(const std::string& key, config::Node value, const std::string& job) {
  value.origin.kind = config::Origin::Kind::recipe;
  value.origin.file = "s.lua";
  value.origin.line = 4;
  value.key_origin = value.origin;
  config::PartInfo warm{"warm", "", "s.lua:4", {}};
  warm.entry[key] = std::move(value);
  config::Catalog catalog = reference_catalog();
  catalog["phase"] = {warm};
  config::Request request;
  request.files_must_exist = false;
  const TempDir temp;
  request.job = temp.write("job.toml", job);
  return config::load(request, catalog);
}

}  // namespace

TEST_CASE("config: a registered phase gives what the entry that names it leaves out", "[config]") {
  const std::string named = "[[phases]]\nphase = \"warm\"\n";
  const config::PhaseEntry taken = good(load_warm("steps", config::Node(std::int64_t{7}), named)).phases.at(0);
  CHECK(taken.steps == 7);
  CHECK(taken.phase == "warm");
  CHECK(config::explain(load_warm("steps", config::Node(std::int64_t{7}), named), "phases[0].steps", reference_catalog())
            .starts_with("phases[0].steps = 7 from s.lua:4, unset by default\n"));
  CHECK(good(load_warm("steps", config::Node(std::int64_t{7}), named + "steps = 9\n")).phases.at(0).steps == 9);
  CHECK(good(load_warm("lr_scale", config::Node(0.5), named + "lr_scale = 1.0\n")).phases.at(0).lr_scale == 0.5);  // as a snapshot has it
  CHECK_FALSE(good(load_warm("steps", config::Node(std::int64_t{7}), "[[phases]]\nname = \"other\"\n")).phases.at(0).steps);
}

TEST_CASE("config: a mistake in what a registered phase gives has the line of the phase", "[config]") {
  const std::string named = "[[phases]]\nphase = \"warm\"\n";
  const auto place = [](const config::Loaded& loaded) { return config::to_text(loaded.report.problems.at(0).origin); };
  const config::Loaded negative = load_warm("lr_scale", config::Node(-1.0), named);
  CHECK(problem(negative) == "phases[0].lr_scale (-1) must be non-negative (>= 0)");
  CHECK(place(negative) == "s.lua:4");
  const config::Loaded unknown = load_warm("lr_scal", config::Node(0.5), named);
  CHECK(problem(unknown) == "[phases[0]] unknown key 'lr_scal'; did you mean 'lr_scale'?");
  CHECK(place(unknown) == "s.lua:4");
  const config::Loaded too_long = load_warm("seq_len", config::Node(std::int64_t{4096}), named);
  CHECK(problem(too_long).find("phases[0].seq_len (4096) exceeds model.max_seq_len (2048)") == 0);
  CHECK(place(too_long) == "s.lua:4");
}

}  // namespace kf::test
