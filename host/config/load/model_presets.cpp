#include "config/load/model_presets.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <optional>

#include "config/huggingface/gguf.h"
#include "config/huggingface/huggingface.h"
#include "config/load/toml.h"
#include "config/schema/schema.h"
#include "core/error.h"
#include "core/text.h"

namespace kf::config {

extern const char* const kModelPresets;  // model_preset_table.cpp

namespace {

HubModels hub_models = nullptr;

const Table& preset_table() {
  static const Table all = [] {
    Report report;
    std::optional<Table> table = parse_toml(kModelPresets, "model presets", Origin::Kind::preset, report);
    KF_CHECK(table && report.problems.empty(), Code::other, "the model presets are broken: {}", to_text(report));
    return std::move(*table);
  }();
  return all;
}

/// The keys of an entry over those that it builds on.
Table resolved(const std::string& name) {
  const Table& own = *preset_table().find(name)->table();
  Table out;
  if (const Node* base = own.find("from")) {
    out = resolved(std::get<std::string>(base->value));
  }
  merge(out, own);
  out.erase("from");
  return out;
}

std::string text_of(const Table& tree, const char* key) {
  const Node* node = find_node(tree, key);
  const auto* text = node ? std::get_if<std::string>(&node->value) : nullptr;
  return text ? *text : "";
}

/// The integer of a file, or of the command line's text; 1 for what is neither.
std::int64_t integer_of(const Node& node) {
  if (const auto* value = std::get_if<std::int64_t>(&node.value)) {
    return *value;
  }
  std::int64_t parsed = 1;
  if (const auto* text = std::get_if<std::string>(&node.value)) {
    std::from_chars(text->data(), text->data() + text->size(), parsed);
  }
  return parsed;
}

void multiply(Table& model, const char* key, std::int64_t factor) {
  Node* node = model.find(key);
  if (auto* value = node ? std::get_if<std::int64_t>(&node->value) : nullptr) {
    *value *= factor;
  }
}

/// The [model] keys from a folder's config.json, or from the header of a GGUF file.
Table from_source(const fs::path& source, const Node& asked, Report& report) {
  std::vector<std::string> problems;
  Table model;
  try {
    model = gguf::is_gguf_file(source) ? model_of_gguf(source, problems)
                                       : model_of_config_json(source / "config.json", problems, &report.warnings);
  } catch (const Error& error) {
    problems.push_back(error.what());
  }
  for (const std::string& problem : problems) {
    report.problems.push_back({asked.origin, problem});
  }
  return model;
}

/// The folder with a config.json that a name stands for: itself, or that of a model of the hub ("" where it cannot be had, which is then a
/// problem of the job). Nothing for presets and for other weights.
std::optional<fs::path> folder_of(const std::string& name, bool weights, const Node& asked, Report& report) {
  std::error_code error;
  if (is_huggingface_folder(name)) {
    return name;
  }
  const std::vector<std::string> presets = weights ? std::vector<std::string>() : model_preset_names();
  const std::optional<HubName> model = hub_name(name, false);
  if (hub_models == nullptr || !model || fs::exists(name, error) || std::find(presets.begin(), presets.end(), name) != presets.end()) {
    return std::nullopt;
  }
  try {
    return hub_models(*model);
  } catch (const Error& failure) {
    report.problems.push_back(
        {asked.origin, format("{} = {}: {}", weights ? "checkpoint.init_from" : "model.preset", kf::quoted(name), failure.what())});
    return fs::path();
  }
}

/// The keys that the job asks for, and the name under which messages know them.
std::optional<ModelPreset> chosen(const Table& merged, Report& report) {
  const std::string preset = text_of(merged, "model.preset");
  const std::string weights = text_of(merged, "checkpoint.init_from");
  const bool by_weights = preset.empty();
  const std::string& name = by_weights ? weights : preset;
  if (name.empty()) {
    return std::nullopt;
  }
  const Node& asked = *find_node(merged, by_weights ? "checkpoint.init_from" : "model.preset");
  if (gguf::is_gguf_file(name)) {
    return ModelPreset{name, from_source(name, asked, report)};
  }
  if (const std::optional<fs::path> folder = folder_of(name, by_weights, asked, report)) {
    return ModelPreset{name + "/config.json", folder->empty() ? Table() : from_source(*folder, asked, report)};
  }
  if (by_weights) {
    return std::nullopt;
  }
  try {
    return ModelPreset{"model.preset '" + preset + "'", model_preset(preset)};
  } catch (const Error& error) {
    report.problems.push_back({asked.origin, std::string("model.preset: ") + error.what()});
    return std::nullopt;
  }
}

}  // namespace

void set_hub_models(HubModels find) { hub_models = find; }

std::vector<std::string> model_preset_names() {
  std::vector<std::string> names;
  for (const auto& [name, keys] : preset_table()) {
    if (!name.starts_with("_")) {
      names.push_back(name);
    }
  }
  return names;
}

Table model_preset(const std::string& name) {
  const std::vector<std::string> names = model_preset_names();
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    const std::string near = nearest(name, names);
    fail(Code::config, "there is no preset '{}'{} have: {}; a folder with a config.json is one, too", name,
         near.empty() ? ";" : "; did you mean '" + near + "'?", join(names, ", "));
  }
  Table model = resolved(name);
  for (auto& [key, node] : model) {
    node.origin = node.key_origin = Origin{Origin::Kind::preset, "preset " + name, 0, 0, ""};
  }
  return model;
}

void scale_model(Table& model, std::int64_t scale) {
  const int k = std::countr_zero(static_cast<std::uint64_t>(scale));
  const std::int64_t all = std::int64_t{1} << (k / 3);
  const std::int64_t heads = all * (k % 3 >= 1 ? 2 : 1);
  multiply(model, "n_layers", all);
  for (const char* key : {"n_heads", "n_kv_heads", "global_kv_heads", "ffn_hidden_dim", "moe_ffn_dim", "moe_shared_ffn_dim"}) {
    multiply(model, key, heads);
  }
  for (const char* key : {"dim", "attn_out_dim", "moe_input_dim"}) {
    multiply(model, key, all * (k % 3 == 2 ? 2 : 1));
  }
}

/// Rows of queries and keys are read from a GGUF file in the order of "half", whatever order they have there.
void check_rope_layout(const Table& merged, Report& report) {
  const Node* const layout = find_node(merged, "model.rope_layout");
  const bool fits = layout == nullptr || text_of(merged, "model.rope_layout") == "half";
  if (!fits && gguf::is_gguf_file(text_of(merged, "checkpoint.init_from"))) {
    report.problems.push_back(
        {layout->origin,
         format("model.rope_layout = {}: the weights of a GGUF file (checkpoint.init_from) are read for \"half\"", brief(*layout))});
  }
}

std::optional<ModelPreset> lay_model_preset(Table& merged, std::vector<Table>& layers, Report& report) {
  std::optional<ModelPreset> choice = chosen(merged, report);
  const Node* scale = find_node(merged, "model.scale");
  const std::int64_t times = scale ? integer_of(*scale) : 1;  // other values are the schema's problem
  if (times != 1 && !choice) {
    report.problems.push_back({scale->origin, format("model.scale ({}) grows a preset: set model.preset", times)});
  }
  if (!choice) {
    check_rope_layout(merged, report);
    return choice;
  }
  if (times > 1) {
    if (!std::has_single_bit(static_cast<std::uint64_t>(times)) || times > 1 << 20) {
      report.problems.push_back({scale->origin, format("model.scale ({}) must be a power of two, at most 2^20", times)});
      return std::nullopt;
    }
    scale_model(choice->model, times);
  }
  Table layer;
  layer["model"] = Node(choice->model);
  Table below = layer;
  merge(below, merged);
  merged = std::move(below);
  check_rope_layout(merged, report);
  layers.insert(layers.begin(), std::move(layer));
  return choice;
}

void warn_of_overrides(const ModelPreset& preset, Loaded& loaded) {
  std::vector<std::string> lines;
  for (const auto& [key, value] : preset.model) {
    const Row* row = find_row("model." + key);
    const Node* given = find_node(loaded.merged, "model." + key);
    if (row && given && !(row->get(loaded.config) == value)) {
      lines.push_back(
          format("model.{} = {} ({}) instead of {}", key, brief(row->get(loaded.config)), to_text(given->origin), brief(value)));
    }
  }
  if (!lines.empty()) {
    loaded.report.warnings.push_back(format("{}: the job's own keys win: {}", preset.name, join(lines, "; ")));
  }
}

}  // namespace kf::config
