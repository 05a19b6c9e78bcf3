// Files: the chain of `extends`, broken TOML, what wins over what.

#include "config/load/layers.h"
#include "job.h"

namespace kf::test {
namespace {

config::Loaded load_file(const fs::path& job, std::vector<std::string> overrides = {}) {
  config::Request request;
  request.job = job;
  request.overrides = std::move(overrides);
  request.files_must_exist = false;
  return config::load(request, reference_catalog());
}

std::string only_problem(const config::Loaded& loaded) {
  INFO(config::to_text(loaded.report));
  REQUIRE(loaded.report.problems.size() == 1);
  return config::to_text(loaded.report);
}

}  // namespace

TEST_CASE("config: extends chains, paths start at the file that extends, and later layers win", "[config]") {
  const TempDir temp;
  temp.write("base/root.toml", "[optimizer]\nlr = 1e-1\nweight_decay = 0.5\n[train]\nseed = 1\n");
  temp.write("base/middle.toml", "extends = \"root.toml\"\n[optimizer]\nlr = 1e-2\n");
  const fs::path job = temp.write("job.toml", "extends = \"base/middle.toml\"\n[train]\nseed = 2\n");
  const config::Config c = good(load_file(job, {"--train.seed=3"}));
  CHECK(c.optimizer.lr == 1e-2);
  CHECK(c.optimizer.weight_decay == 0.5);
  CHECK(c.train.seed == 3);
  CHECK(c.run.name == "job");
}

TEST_CASE("config: files that extend each other in a circle are an error, not a hang", "[config]") {
  const TempDir temp;
  temp.write("b.toml", "extends = \"a.toml\"\n");
  const fs::path a = temp.write("a.toml", "extends = \"b.toml\"\n");
  const std::string text = only_problem(load_file(a));
  CHECK(text.find("b.toml:1:11") != std::string::npos);
  CHECK(text.find("`extends` goes round in a circle") != std::string::npos);
  CHECK(text.find("a.toml → ") != std::string::npos);
}

TEST_CASE("config: a file that is not there is named, with who asked for it", "[config]") {
  const TempDir temp;
  CHECK(only_problem(load_file(temp / "nope.toml")).find("file not found") != std::string::npos);
  const std::string text = only_problem(load_file(temp.write("job.toml", "\nextends = \"gone.toml\"\n")));
  CHECK(text.find("job.toml:2:11") != std::string::npos);
  CHECK(text.find("gone.toml") != std::string::npos);
  CHECK(only_problem(load_file(temp.path())).find("2 |") == std::string::npos);  // a folder
  const std::string folder = only_problem(load_file(temp.write("folder.toml", "\nextends = \".\"\n")));
  CHECK(folder.find("folder.toml:2:11") != std::string::npos);
  CHECK(folder.find("is a folder; name the TOML file in it") != std::string::npos);
}

TEST_CASE("config: broken TOML is one problem with its line", "[config]") {
  const TempDir temp;
  const std::string toml =
      GENERATE(as<std::string>(), "[model\ndim = 5\n", "[model]\ndim = \n", "[model]\ndim = 1\ndim = 2\n", "[model]\n[model]\n",
               std::string("[model]\ndim = \"\0\"\n", 18), "[model]\ndim = \"\xff\"\n", "a = [1, 2", "x = 2024-13-01\n",
               "[model]\n\n[&x]\n", "[&x]\n", "a.&b = 1\n", "a = { & = 1 }\n", "\xc8\x86 = 1\n", "[model]\ndim\xc3\xa4 = 1\n");
  CAPTURE(toml);
  const std::string text = only_problem(load_file(temp.write("job.toml", toml)));
  CHECK(text.find("not valid TOML") != std::string::npos);
  CHECK(text.find("job.toml:") != std::string::npos);
}

TEST_CASE("config: where the parser gives up is found, too", "[config]") {
  const config::Loaded loaded = load_toml("[model]\ndim = 64\n\n[&x]\ny = 1\n[z]\n");
  REQUIRE(loaded.report.problems.size() == 1);
  CHECK(loaded.report.problems[0].origin.line == 4);
  CHECK(loaded.report.problems[0].origin.text == "[&x]");
}

TEST_CASE("config: a byte order mark is no part of the first key", "[config]") {
  CHECK(good(load_toml("\xef\xbb\xbf[train]\nseed = 7\n")).train.seed == 7);
}

TEST_CASE("config: dates are refused with a remedy", "[config]") {
  // One problem each: the place has no second fault for lack of a value.
  CHECK(only_problem(load_toml("[metrics]\nwandb_run_name = 2024-01-01\n")).find("put it in quotes") != std::string::npos);
  CHECK(only_problem(load_toml("[data]\nshuffle = false\n")).find("data.shuffle (false) must be one of ") != std::string::npos);
  CHECK(only_problem(load_toml("[train]\nmax_steps = 2024-01-01\n")).find("put it in quotes") != std::string::npos);
  CHECK(only_problem(load_toml("hooks = [ 07:32:00 ]\n")).find("put it in quotes") != std::string::npos);
}

TEST_CASE("config: tables nested beyond reason are refused, not followed to the end of the stack", "[config]") {
  std::string key = "a";
  for (int i = 0; i < 5000; ++i) {
    key += ".a";
  }
  CHECK_FALSE(load_toml(key + " = 1\n").report.problems.empty());
  CHECK_FALSE(load_toml("a = " + std::string(5000, '[') + std::string(5000, ']') + "\n").report.problems.empty());
  CHECK_FALSE(load_cli({"--" + key + "=1"}).report.problems.empty());
  CHECK_FALSE(load_cli({"--data.datasets=" + std::string(5000, '[')}).report.problems.empty());
}

TEST_CASE("config: extends takes a list, of which later files win, each with its own bases", "[config]") {
  const TempDir temp;
  temp.write("one.toml", "[train]\nseed = 1\nbatch_size = 3\n[optimizer]\nlr = 1e-2\n");
  temp.write("root.toml", "[optimizer]\nlr = 5e-3\neps = 1e-7\n");
  temp.write("two.toml", "extends = \"root.toml\"\n[train]\nseed = 2\n");
  const config::Config c = good(load_file(temp.write("job.toml", "extends = [\"one.toml\", \"two.toml\"]\n")));
  CHECK(c.train.seed == 2);
  CHECK(c.train.batch_size == 3);
  CHECK(c.optimizer.lr == 5e-3);
  CHECK(c.optimizer.eps == 1e-7);
  const std::string text = only_problem(load_file(temp.write("odd.toml", "extends = [\"one.toml\", 3]\n")));
  CHECK(text.find("extends (3) is not a string; it names one TOML file, or a list of them") != std::string::npos);
}

TEST_CASE("config: a recipe lies above the job and its own extends below it", "[config]") {
  const TempDir temp;
  temp.write("base.toml", "[optimizer]\nlr = 0.1\nweight_decay = 0.3\n");
  config::Table optimizer;
  optimizer["lr"] = config::Node(0.2, {config::Origin::Kind::recipe, "r.lua", 4, 1, ""});
  config::Table table;
  table["extends"] = config::Node(std::string("base.toml"));
  table["optimizer"] = config::Node(optimizer);
  config::Request request;
  request.recipe = config::Node(table, {config::Origin::Kind::recipe, (temp / "recipe.lua").string(), 1, 1, ""});
  const config::Loaded loaded = config::load(request, reference_catalog());
  CHECK(good(loaded).optimizer.lr == 0.2);
  CHECK(loaded.config.optimizer.weight_decay == 0.3);
  CHECK(loaded.config.run.name == "recipe");
}

TEST_CASE("config: an empty Lua table is what the declared type says", "[config]") {
  config::Table data;
  data["datasets"] = config::Node(config::Table());
  data["anneal_weights"] = config::Node(config::Array());
  config::Table table;
  table["data"] = config::Node(data);
  table["train"] = config::Node(config::Array());
  table["hooks"] = config::Node(config::Table());
  config::Request request;
  request.recipe = config::Node(table);
  const config::Config c = good(config::load(request, reference_catalog()));
  CHECK(c.data.datasets.empty());
  CHECK(c.data.anneal_weights.empty());
  CHECK(c.hooks.empty());
}

TEST_CASE("config: a link to itself is no job, and no crash", "[config]") {
  const TempDir temp;
  fs::create_symlink("job.toml", temp / "job.toml");
  config::Request request;
  request.job = temp / "job.toml";
  CHECK(problem(config::load(request, reference_catalog())).find("Too many levels of symbolic links") != std::string::npos);
}

TEST_CASE("config: a device, or a file larger than any job, is not read", "[config]") {
  const TempDir temp;
  const fs::path job = temp.write("job.toml", "extends = \"/dev/zero\"\n");
  config::Request request;
  request.job = job;
  CHECK(problem(config::load(request, reference_catalog())) == "/dev/zero is a device; name a TOML file");
  fs::resize_file(job, std::uintmax_t{1} << 33);  // nothing but a hole
  CHECK(problem(config::load(request, reference_catalog())).find("has 8589934592 bytes, more than any job") != std::string::npos);
}

}  // namespace kf::test
