// config: TOML and arguments to resolved values or a rejection; and the shipped presets.

#include <algorithm>
#include <map>

#include "builtins/builtins.h"
#include "config/load/load.h"
#include "config/plan/budget.h"
#include "config/plan/derived.h"
#include "config/schema/schema.h"
#include "core/error.h"
#include "core/text.h"
#include "parity/areas.h"
#include "parity/job.h"
#include "support/temp_dir.h"

namespace kf::parity {
namespace {

/// Keys of the reference that this program leaves out: vision (README, "How to compare").
bool foreign(const std::string& key) {
  static const std::vector<std::string> patterns = {"vision_encoder*",
                                                    "adapter*",
                                                    "vlm*",
                                                    "video*",
                                                    "data.hf_dataset_image_field",
                                                    "data.hf_dataset_prompt_field",
                                                    "data.hf_image_size",
                                                    "checkpoint.ignore_freeze_mismatch"};
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) { return glob_match(pattern, key); });
}

void flatten(const std::string& key, const Node& value, const std::vector<config::Row>& fields, std::map<std::string, Node>& out) {
  if (!fields.empty() && value.table()) {  // a record: checkpoint.dyn_ckpt_window
    for (const auto& [name, entry] : *value.table()) {
      out[key + "." + name] = entry;
    }
  } else {
    out[key] = value;
  }
}

/// Every setting by its key, resolved as the reference shows it: n_kv_heads follows n_heads.
std::map<std::string, Node> resolved(const config::Config& config) {
  std::map<std::string, Node> out;
  for (const config::Row& row : config::rows()) {
    flatten(row.key(), row.get(config), row.fields, out);
  }
  out["model.n_kv_heads"] = Node(config::kv_heads(config.model));
  return out;
}

/// Lists of tables compare only the listed keys; everything else is the same tree.
bool agrees(const Node& ours, const Node& theirs) {
  if (theirs.array() && ours.array() && ours.array()->size() == theirs.array()->size()) {
    for (std::size_t i = 0; i < ours.array()->size(); ++i) {
      const Node &a = (*ours.array())[i], &b = (*theirs.array())[i];
      if (a.table() && b.table()) {
        for (const auto& [key, value] : *b.table()) {
          const Node* mine = a.table()->find(key);
          if (!foreign("data." + key) && (!mine || !agrees(*mine, value))) {
            return false;
          }
        }
      } else if (!agrees(a, b)) {
        return false;
      }
    }
    return true;
  }
  return same(ours, theirs);
}

void compare_values(const std::map<std::string, Node>& ours, const Table& theirs, const std::string& prefix, Comparison& out) {
  for (const auto& [name, value] : theirs) {
    const std::string key = prefix + name;
    if (foreign(key)) {
      continue;
    }
    const auto found = ours.find(key);
    if (found == ours.end()) {
      out.require(key, value.is_null(), key + " is no setting here, expected " + shown(value));
    } else {
      out.require(key, agrees(found->second, value), format("{} is {}, expected {}", key, shown(found->second), shown(value)));
    }
  }
}

/// What is not the default must be in `diff`. Settings that only this program has are not asked of the reference.
void compare_unlisted(const std::map<std::string, Node>& ours, const Table& diff, Comparison& out) {
  const std::map<std::string, Node> defaults = resolved(config::Config{});
  for (const auto& [key, value] : ours) {
    const auto before = defaults.find(key);
    const bool changed = before == defaults.end() ? !value.is_null() : !same(before->second, value);
    if (changed && !key.starts_with("run.") && key != "checkpoint.dyn_ckpt_window") {
      out.require(key, diff.find(key) != nullptr,
                  format("{} is {}, which is not the default, and the case does not say so", key, shown(value)));
    }
  }
}

void compare_computed(const config::Config& config, const Table& expected, Comparison& out) {
  std::map<std::string, Node> ours;
  ours["head_dim"] = Node(config::head_dim(config.model));
  ours["ffn_hidden"] = Node(config::ffn_hidden_dim(config.model));
  ours["expert_ffn_hidden"] = Node(config::expert_ffn_hidden_dim(config.model));
  ours["num_params_estimate"] = Node(config::parameter_count(config.model));
  ours["is_moe"] = Node(config::is_moe(config.model));
  ours["effective_data_seed"] = Node(config::data_seed(config.train));
  for (const auto& [key, value] : expected) {
    if (!value.is_null()) {
      out.require(key, ours.count(key) && same(ours[key], value), format("{} is {}, expected {}", key, shown(ours[key]), shown(value)));
    }
  }
}

void compare_distributed(const config::Config& config, std::int64_t world, const Table& expected, Comparison& out) {
  std::map<std::string, Node> ours = resolved(config);
  ours["distributed.dp_shard"] = Node(config::degrees_of(config.distributed).on_world(world).dp_shard);
  compare_values(ours, expected, "distributed.", out);
}

void compare_accepted(const Case& test, const config::Loaded& loaded, Comparison& out) {
  out.require("accepted", loaded.report.problems.empty(), "was rejected: " + config::to_text(loaded.report));
  if (!loaded.report.problems.empty()) {
    return;
  }
  const std::map<std::string, Node> ours = resolved(loaded.config);
  static const Table none;
  const Table& diff = test.get("diff") ? table(test.at("diff"), "diff") : none;
  compare_values(ours, diff, "", out);
  if (test.get("diff")) {
    compare_unlisted(ours, diff, out);
  }
  if (const Node* touched = test.get("touched")) {
    compare_values(ours, table(*touched, "touched"), "", out);
  }
  if (const Node* computed = test.get("computed")) {
    compare_computed(loaded.config, table(*computed, "computed"), out);
  }
  if (const Node* distributed = test.get("resolved_distributed")) {
    compare_distributed(loaded.config, integer(test.at("world_size"), "world_size"), table(*distributed, "resolved_distributed"), out);
  }
  if (test.get("warning")) {
    out.require("warning", boolean(test.at("warning"), "warning") == !loaded.report.warnings.empty(), "no warning was given");
  }
}

void compare_rejected(const Case& test, const std::string& message, Comparison& out) {
  out.require("rejected", !message.empty(), "was accepted, and should be rejected");
  for (const Node& keyword : list(test.at("keywords"), "keywords")) {
    const std::string word = text(keyword, "keywords");
    out.require("keywords", message.empty() || lower(message).find(lower(word)) != std::string::npos,
                format("the message does not say '{}': {}", word, message));
  }
}

config::Request request_of(const Case& test, const test::TempDir& temp) {
  config::Request request;
  request.files_must_exist = false;  // the cases name files that are not there
  if (const Node* toml = test.get("toml")) {
    request.job = temp.write("job.toml", text(*toml, "toml"));
  } else if (test.get("config_path")) {
    request.job = temp / "nope.toml";
  }
  if (const Node* arguments = test.get("cli")) {
    for (const Node& argument : list(*arguments, "cli")) {
      request.overrides.push_back(text(argument, "cli"));
    }
  }
  if (const Node* world = test.get("world_size")) {
    request.world = integer(*world, "world_size");
  }
  return request;
}

void run_case(const Case& test, Comparison& out) {
  const Registries registries = native_registries();
  const test::TempDir temp;
  const config::Loaded loaded = config::load(request_of(test, temp), registries.catalog());
  if (boolean(test.at("accepted"), "accepted")) {
    compare_accepted(test, loaded, out);
  } else {
    compare_rejected(test, loaded.report.problems.empty() ? "" : config::to_text(loaded.report), out);
  }
}

/// One entry of configs.json: the shipped file of that name against the dump of the reference's.
void run_preset(const Case& test, Comparison& out, const Settings& settings) {
  const Registries registries = native_registries();
  const std::string name = text(test.at("preset"), "preset");
  config::Request request;
  request.files_must_exist = false;
  if (name != "defaults") {
    request.job = settings.configs / name;
  }
  const config::Loaded loaded = config::load(request, registries.catalog());
  out.require("accepted", loaded.report.problems.empty(), "was rejected: " + config::to_text(loaded.report));
  const std::map<std::string, Node> ours = resolved(loaded.config);
  const Table& dump = table(test.at(test.use_right ? "right" : "resolved"), "resolved");
  for (const auto& [section, values] : dump) {
    if (section == "computed") {
      compare_computed(loaded.config, table(values, section), out);
    } else if (values.table() && config::is_section(section)) {
      compare_values(ours, *values.table(), section + ".", out);
    }
  }
}

}  // namespace

void run_config(const Case& test, Comparison& out, const Settings& settings) {
  if (test.kind == "preset") {
    run_preset(test, out, settings);
  } else {
    run_case(test, out);
  }
}

}  // namespace kf::parity
