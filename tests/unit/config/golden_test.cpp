// The reference's own cases: which jobs it takes, what they resolve to, and which it should refuse.

#include <algorithm>
#include <cmath>

#include "config/load/layers.h"
#include "config/plan/budget.h"
#include "config/plan/derived.h"
#include "config/plan/plan.h"
#include "config/show/emit.h"
#include "config/tree/json.h"
#include "job.h"

namespace kf::test {
namespace {

using config::Array;
using config::Node;
using config::Table;

const fs::path kGolden = fs::path(KF_TEST_DATA) / "config";

Table golden_table(const char* file) {
  const fs::path path = kGolden / file;
  return *config::parse_json(read_file(path), path.string()).table();
}

bool is_vision(const std::string& key) {
  static const std::vector<std::string> patterns{"vision_encoder*",
                                                 "adapter*",
                                                 "vlm*",
                                                 "video*",
                                                 "data.hf_dataset_image_field",
                                                 "data.hf_dataset_prompt_field",
                                                 "data.hf_image_size",
                                                 "checkpoint.ignore_freeze_mismatch"};
  return std::any_of(patterns.begin(), patterns.end(), [&key](const std::string& pattern) { return glob_match(pattern, key); });
}

/// Equal as numbers, text or lists; of tables in lists only the listed keys count.
bool agrees(const Node& ours, const Node& theirs) {
  if (const Array* list = theirs.array()) {
    if (!ours.array() || ours.array()->size() != list->size()) {
      return false;
    }
    for (std::size_t i = 0; i < list->size(); ++i) {
      if (!agrees((*ours.array())[i], (*list)[i])) {
        return false;
      }
    }
    return true;
  }
  if (const Table* table = theirs.table()) {
    return ours.table() && std::all_of(table->begin(), table->end(), [&](const Table::Entry& entry) {
             const Node* mine = ours.table()->find(entry.first);
             return mine && agrees(*mine, entry.second);
           });
  }
  const auto number = [](const Node& node) {
    const auto* integer = std::get_if<std::int64_t>(&node.value);
    const auto* real = std::get_if<double>(&node.value);
    return integer ? static_cast<double>(*integer) : real ? *real : NAN;
  };
  return ours == theirs || number(ours) == number(theirs);
}

const std::string& text(const Node& node) { return std::get<std::string>(node.value); }

/// `right` replaces what the reference got wrong.
Table outcome(const Table& test) {
  Table out = test;
  const Node* use = test.find("use");
  if (use && text(*use) == "right") {
    config::merge(out, *test.find("right")->table());
  }
  return out;
}

config::Loaded load_case(const Table& test, const TempDir& temp) {
  config::Request request;
  request.files_must_exist = false;
  if (const Node* toml = test.find("toml"); toml && !toml->is_null()) {
    request.job = temp.write("job.toml", text(*toml));
  } else if (test.find("config_path")) {
    request.job = temp / "nope.toml";
  }
  for (const Node& argument : *test.find("cli")->array()) {
    request.overrides.push_back(text(argument));
  }
  if (const Node* world = test.find("world_size")) {
    request.world = std::get<std::int64_t>(world->value);
  }
  return config::load(request, reference_catalog());
}

void check_values(const Table& tree, const Table& expected, const std::string& prefix) {
  for (const auto& [name, value] : expected) {
    const std::string key = prefix + name;
    if (!is_vision(key)) {
      CAPTURE(key);
      const Node* ours = config::find_node(tree, key);
      REQUIRE(ours != nullptr);
      CAPTURE(to_text(*ours), to_text(value));
      CHECK(agrees(*ours, value));
    }
  }
}

/// Whatever differs from the defaults must be in the case's list.
void check_nothing_else(const Table& tree, const Table& diff) {
  const Table defaults = *config::to_tree(config::Config()).table();
  for (const auto& [section, values] : tree) {
    if (section == "run" || !config::is_section(section)) {
      continue;
    }
    for (const auto& [name, value] : *values.table()) {
      const std::string key = section + "." + name;
      const bool listed = std::any_of(diff.begin(), diff.end(), [&key](const Table::Entry& entry) { return entry.first.starts_with(key); });
      const bool follows = key == "model.n_kv_heads";
      CAPTURE(key);
      CHECK((listed || follows || value == *config::find_node(defaults, key)));
    }
  }
}

void check_computed(const config::Config& c, const Table& expected) {
  const Table ours = [&c] {
    Table out;
    out["head_dim"] = Node(config::head_dim(c.model));
    out["ffn_hidden"] = Node(config::ffn_hidden_dim(c.model));
    out["expert_ffn_hidden"] = Node(config::expert_ffn_hidden_dim(c.model));
    out["num_params_estimate"] = Node(config::parameter_count(c.model));
    out["is_moe"] = Node(config::is_moe(c.model));
    out["effective_data_seed"] = Node(config::data_seed(c.train));
    return out;
  }();
  for (const auto& [name, value] : expected) {
    CAPTURE(name);
    CHECK((value.is_null() || agrees(*ours.find(name), value)));
  }
}

void check_accepted(const Table& test, const config::Loaded& loaded) {
  const Table tree = *config::to_tree(good(loaded)).table();
  check_values(tree, *test.find("diff")->table(), "");
  check_nothing_else(tree, *test.find("diff")->table());
  if (const Node* touched = test.find("touched")) {
    check_values(tree, *touched->table(), "");
  }
  check_computed(loaded.config, *test.find("computed")->table());
  if (const Node* distributed = test.find("resolved_distributed")) {
    CHECK(agrees(Node(config::make_plan(loaded, "", std::get<std::int64_t>(test.find("world_size")->value)).mesh.degree(Axis::dp_shard)),
                 *distributed->table()->find("dp_shard")));
  }
  if (test.find("warning")) {
    CHECK_FALSE(loaded.report.warnings.empty());
  }
}

void check_rejected(const Table& test, const config::Loaded& loaded) {
  REQUIRE_FALSE(loaded.report.problems.empty());
  const std::string report = lower(config::to_text(loaded.report));
  for (const Node& keyword : *test.find("keywords")->array()) {
    CAPTURE(report, text(keyword));
    CHECK(report.find(lower(text(keyword))) != std::string::npos);
  }
}

}  // namespace

TEST_CASE("config: the reference's cases are taken and refused as they should be", "[config]") {
  std::size_t run = 0;
  const Table file = golden_table("cases.json");
  for (const Node& entry : *file.find("cases")->array()) {
    const Table test = outcome(*entry.table());
    if (test.find("compare")) {
      continue;
    }
    CAPTURE(text(*test.find("name")));
    const TempDir temp;
    const config::Loaded loaded = load_case(test, temp);
    std::get<bool>(test.find("accepted")->value) ? check_accepted(test, loaded) : check_rejected(test, loaded);
    ++run;
  }
  CHECK(run > 100);
}

TEST_CASE("config: every preset resolves to the reference's values and fits its number of ranks", "[config]") {
  std::size_t run = 0;
  const Table presets = golden_table("configs.json");
  for (const auto& [name, entry] : presets) {
    if (entry.table()->find("compare")) {
      continue;
    }
    CAPTURE(name);
    const Table dump = outcome(*entry.table());
    config::Request request;
    request.files_must_exist = false;
    if (name != "defaults") {
      request.job = fs::path(KF_SOURCE_DIR) / "configs" / name;
      const std::size_t gpus = name.find("gpu");
      request.world = gpus == std::string::npos ? 8 : std::stoll(name.substr(name.rfind('_', gpus) + 1));
    }
    const config::Loaded loaded = config::load(request, reference_catalog());
    const Table tree = *config::to_tree(good(loaded)).table();
    for (const auto& [section, values] : dump) {
      if (section == "computed") {
        check_computed(loaded.config, *values.table());
      } else if (values.table() && config::is_section(section)) {
        check_values(tree, *values.table(), section + ".");
      }
    }
    ++run;
  }
  CHECK(run == 22);
}

}  // namespace kf::test
