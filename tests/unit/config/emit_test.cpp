// Settings written down: snapshots that read back, docs that are not stale.

#include <cmath>
#include <cstring>

#include "config/load/layers.h"
#include "config/rules/unbuilt.h"
#include "config/rules/unsaid.h"
#include "config/show/emit.h"
#include "config/tree/json.h"
#include "core/text.h"
#include "core/wrap.h"
#include "job.h"

namespace kf::test {
namespace {

/// Both as text, so that -0.0, the last bit and the type count.
void check_same(const config::Config& a, const config::Config& b) {
  CHECK(config::to_toml(a) == config::to_toml(b));
  CHECK(a.parts == b.parts);
  for (const config::Row& row : config::rows()) {
    CAPTURE(row.key());
    CHECK(config::value_text(row.get(a)) == config::value_text(row.get(b)));
    CHECK(row.get(a).is_null() == row.get(b).is_null());
  }
}

config::Config reread(const config::Config& c) { return good(load_toml(config::to_toml(c))); }

}  // namespace

TEST_CASE("config: a snapshot reads back to the same job, bit for bit", "[config]") {
  const config::Config c = good(load_job({R"(hooks = ["norms", "guard"]
[run]
name = "läufe-ü \"x\" \\ ."
[optimizer]
lr = 1e-05
weight_decay = -0.0
eps = 4.9406564584124654e-324
betas = [0.1, 0.9999999999999999]
[train]
grad_clip_norm = inf
seed = 9007199254740993
data_seed = -9223372036854775808
[data]
file_pattern = "{a,b}/**/*.txt"
anneal_weights = { "a b" = 0.1, "ü" = 1.7976931348623157e308 }
[[data.datasets]]
path = "/a\tb"
weight = 0.30000000000000004
[[data.datasets]]
hf_name = "x/y"
name = "a b"
[[data.datasets]]
hf_name = "z"
name = "ü"
[[data.phases]]
start_step = 10
dataset_weights = { "/a\tb" = 0.0 }
[metrics]
wandb_project = "\u0007"
[checkpoint.dyn_ckpt_window]
stop = 70
[checkpoint]
exclude_from_loading = ["a", ""]
[scheduler]
name = "inverse_sqrt"
[scheduler.inverse_sqrt]
shift = 3
[mlp.tanh_mlp]
widths = [1, 2.5, "x", true]
)",
                                          {"--data.anneal_start_step=0"}}));
  CHECK(std::signbit(c.optimizer.weight_decay));
  check_same(c, reread(c));
  check_same(config::Config(), [] {
    config::Config plain = reread(config::Config());
    plain.run.name.clear();  // the file's
    return plain;
  }());
}

TEST_CASE("config: phases survive the snapshot, unset keys as unset", "[config]") {
  const config::Config c = good(load_toml(R"([[data.datasets]]
path = "x"
name = "a b"
[[phases]]
name = "first"
steps = 5
freeze = ["layers.*"]
mixture = { "a b" = 0.5 }
[[phases]]
lr_scale = 0.25
seq_len = 16
)"));
  REQUIRE(c.phases.size() == 2);
  CHECK(c.phases[0].steps == 5);
  CHECK_FALSE(c.phases[1].steps);
  check_same(c, reread(c));
  CHECK(reread(c).phases == c.phases);
}

TEST_CASE("config: a budget in tokens survives the snapshot without contradicting itself", "[config]") {
  const config::Config c = good(load_toml("[train]\nmax_tokens = 1000\n[scheduler]\nwarmup_steps = 0\n"));
  check_same(c, reread(c));
}

TEST_CASE("config: folders keep their meaning in a snapshot", "[config]") {
  const config::Config mine = good(load_toml("[checkpoint]\ndir = \"checkpoints\"\n"));
  CHECK(mine.checkpoint.dir == "./checkpoints");  // the working folder's, not the run's
  check_same(mine, reread(mine));
  const config::Config fallback = good(load_toml(""));
  CHECK(fallback.checkpoint.dir == "checkpoints");
  check_same(fallback, reread(fallback));
}

TEST_CASE("config: the JSON tree has the sections, lists as lists, null as null", "[config]") {
  const std::string json = config::to_json(config::to_tree(good(load_cli({"--train.grad_clip_norm=inf", "--model.n_heads=64"}))));
  CHECK(json.find("\"grad_clip_norm\": \"inf\"") != std::string::npos);
  CHECK(json.find("\"n_kv_heads\": 64") != std::string::npos);
  CHECK(json.find("\"dp_shard\": -1") != std::string::npos);
  CHECK(json.find("\"decay_steps\": null") != std::string::npos);
  CHECK(json.find("\"betas\": [0.9, 0.95]") != std::string::npos);
  CHECK(json.find("\"dyn_ckpt_window\": null") != std::string::npos);
}

TEST_CASE("config: docs/config.md is what the fields say", "[config]") {
  INFO("run `kf-host config docs > docs/config.md`");
  CHECK(read_file(fs::path(KF_SOURCE_DIR) / "docs" / "config.md") == config::to_markdown());
}

TEST_CASE("config: every field has a doc that ends in a full stop, and a default that passes its own check", "[config]") {
  for (const config::Row& row : config::rows()) {
    CAPTURE(row.key());
    CHECK(row.doc.size() > 8);
    CHECK(row.doc.ends_with('.'));
    for (const config::Row& field : row.fields) {
      CHECK(field.doc.ends_with('.'));
    }
    if (const double* number = std::get_if<double>(&row.fallback.value); number && (row.check.min || row.check.max)) {
      CHECK(row.check.holds(*number));
    }
    if (const auto* text = std::get_if<std::string>(&row.fallback.value); text && !row.check.choices.empty()) {
      CHECK(std::find(row.check.choices.begin(), row.check.choices.end(), *text) != row.check.choices.end());
    }
  }
}

TEST_CASE("config: the schema knows every key, its bounds and its names", "[config]") {
  const config::Node schema = config::to_schema(reference_catalog());
  for (const config::Row& row : config::rows()) {
    CAPTURE(row.key());
    const std::string path = row.section.empty() ? "properties." + row.name : "properties." + row.section + ".properties." + row.name;
    const config::Node* found = config::find_node(*schema.table(), path);
    REQUIRE(found != nullptr);
    CHECK(found->table()->find("description") != nullptr);
  }
  CHECK(config::to_json(*config::find_node(*schema.table(), "properties.optimizer.properties.lr")) ==
        R"({"type": "number", "exclusiveMinimum": 0.0, "description": "Peak learning rate.", "default": 0.0003})");
  CHECK(config::find_node(*schema.table(), "properties.scheduler.properties.inverse_sqrt.properties.power") != nullptr);
  CHECK(*config::find_node(*schema.table(), "properties.train.additionalProperties") == config::Node(false));
}

TEST_CASE("config: README has the one list of what is not there yet, and the first job as its file has it", "[config]") {
  const std::string readme = read_file(fs::path(KF_SOURCE_DIR) / "README.md");
  CHECK(readme.find(config::unbuilt_markdown()) != std::string::npos);  // `kf-host config docs unbuilt` prints it
  CHECK(readme.find("```toml\n" + read_file(fs::path(KF_SOURCE_DIR) / "examples/toy/job.toml") + "```") != std::string::npos);
}

TEST_CASE("config: docs and tables say of a key that it has no effect yet", "[config]") {
  CHECK(config::to_markdown().find("Steps between checks of the communicator; 0 for none. No effect yet: ") != std::string::npos);
  CHECK(config::keys_table("train.nccl_health_check_interval").find("No effect yet: ") != std::string::npos);
  CHECK(config::keys_table("train.mixed_precision").find("Not built yet: ") != std::string::npos);
  CHECK(config::keys_table("train.max_steps").find(" yet") == std::string::npos);
}

TEST_CASE("config: tables and help fit 80 columns", "[config]") {
  for (const std::string& text : {config::keys_table(""), config::sections_text()}) {
    for (const std::string& line : split(text, '\n')) {
      CAPTURE(line);
      CHECK(
          (columns_of(line) <= 80 || line.find(' ', line.find_first_not_of(' ')) == std::string::npos));  // a word of its own may be longer
    }
  }
}

TEST_CASE("config: several processes are asked for before their arithmetic", "[config]") {
  for (const std::string key : {"dp_shard", "dp_replicate", "tp", "pp", "cp", "ep"}) {
    CAPTURE(key);
    config::Request request;
    request.overrides = {"--distributed." + key + "=2", "--model.vocab_size=257"};  // which 2 does not divide
    request.world = 1;
    request.files_must_exist = false;
    const config::Loaded loaded = config::load(request, reference_catalog());
    REQUIRE(loaded.report.problems.size() == 1);
    CHECK_THAT(loaded.report.problems[0].message, Catch::Matchers::Contains("distributed." + key + " = 2 asks for 2 processes") &&
                                                      Catch::Matchers::Contains("kf-host --nproc 2"));
    CHECK(config::keys_refused(loaded.config).empty());
  }
  CHECK(config::keys_refused(config::Config()).empty());
}

TEST_CASE("config: a job that says neither what nor how long is told what it gets", "[config]") {
  const auto lines = [](std::vector<std::string> overrides) { return config::unsaid(load_cli(std::move(overrides))); };
  const std::vector<std::string> both = lines({});
  REQUIRE(both.size() == 2);
  CHECK_THAT(both[0], Catch::Matchers::Contains("6.7 B parameters"));
  CHECK_THAT(both[1], Catch::Matchers::Contains("100,000 steps"));
  CHECK(lines({"--model.dim=64", "--train.max_steps=5"}).empty());
  CHECK(lines({"--model.preset=llama3-8b", "--train.max_tokens=500000000"}).empty());
  CHECK(lines({"--model.dim=64", "--data.epochs=1"}).empty());
}

TEST_CASE("config: a key whose machinery is still to come says so, unless its value says what happens anyway", "[config]") {
  const auto lines = [](std::vector<std::string> overrides) { return config::keys_without_effect(load_cli(std::move(overrides))); };
  CHECK(lines({}).empty());
  CHECK(lines({"--train.nccl_health_check_interval=0"}).empty());
  CHECK(lines({"--checkpoint.export_dtype=bfloat16"}).empty());
  const std::vector<std::string> said = lines({"--train.nccl_health_check_interval=5"});
  REQUIRE(said.size() == 1);
  CHECK(said[0].find("train.nccl_health_check_interval = 5 has no effect yet: ") == 0);
}

}  // namespace kf::test
