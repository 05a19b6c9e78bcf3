#include "config/load/load.h"

#include <algorithm>
#include <tuple>

#include "config/load/cli.h"
#include "config/load/convert.h"
#include "config/load/layers.h"
#include "config/load/model_presets.h"
#include "config/load/names.h"
#include "config/load/paths.h"
#include "config/load/phase_entry.h"
#include "config/plan/derived.h"
#include "config/rules/validate.h"
#include "config/schema/schema.h"
#include "core/error.h"
#include "core/log.h"

namespace kf::config {
namespace {

/// Lays a layer on the tree. A section that is no table is refused here, so that the lower layers' section survives.
void lay(Table& merged, Table layer, Report& report) {
  std::vector<std::string> refused;
  for (const auto& [name, node] : layer) {
    if (is_section(name) && !node.table() && !node.is_null() && !(node.array() && node.array()->empty())) {
      report.problems.push_back(
          {node.origin, format("{} ({}) is a section, not a value; write [{}] and its keys below", name, brief(node), name)});
      refused.push_back(name);
    } else if (is_section(name) && !node.table()) {
      refused.push_back(name);  // nothing in it
    }
  }
  for (const std::string& name : refused) {
    layer.erase(name);
  }
  merge(merged, layer);
}

/// The command line as a layer of its own, for `config explain`: list places keep their index in the name.
void remember(Table& layer, const Override& option) {
  Table* at = &layer;
  for (std::size_t i = 0; i < option.path.size();) {
    std::string name = option.path[i++].name;
    for (; i < option.path.size() && option.path[i].is_index; ++i) {
      name += format("[{}]", option.path[i].index);
    }
    Node& child = (*at)[name];
    if (i == option.path.size()) {
      child = option.value;
    } else {
      if (!child.table()) {
        child = Node(Table(), option.value.origin);
      }
      at = child.table();
    }
  }
}

/// Reads the merged tree into the Config, row by row.
class ConfigReader {
 public:
  ConfigReader(const Catalog& catalog, Loaded& out) : catalog_(catalog), out_(out), converter_(catalog, out.report) {}

  void read() {
    for (const Row& row : rows()) {
      const Node* node = find_node(out_.merged, row.key());
      const std::optional<Node> value = node ? converter_.convert(*node, row, row.key()) : std::nullopt;
      if (value) {
        row.set(out_.config, *value);
      }
    }
    check_expert_rows();
    read_parts();
    find_unknown_keys();
  }

  const std::set<std::string>& broken() const { return converter_.broken(); }

 private:
  /// Rows that matter only for models with experts.
  void check_expert_rows() {
    for (const Row& row : rows()) {
      const Node* node = find_node(out_.merged, row.key());
      if (row.check.experts_only && node && is_moe(out_.config.model) && !converter_.broken().contains(row.key())) {
        const Node value(row.get(out_.config).value, node->origin);
        if (!converter_.check(value, row, row.key())) {
          row.set(out_.config, row.fallback);
        }
      }
    }
  }

  /// The table of a part: [optimizer.mine] inside the section of that name, [mlp.mine] at the top level.
  const Node* part_table(const std::string& kind, const std::string& name) const {
    const Node* container = out_.merged.find(kind);
    const Node* node = container && container->table() ? container->table()->find(name) : nullptr;
    return node && !find_row(kind + "." + name) ? node : nullptr;
  }

  static bool names(const Node& value, const std::string& kind, const std::string& name) {
    if (const Array* list = value.array()) {
      return std::find(list->begin(), list->end(), Node(name)) != list->end();
    }
    const std::string* given = std::get_if<std::string>(&value.value);
    return given != nullptr && (kind == "mlp" ? mlp_name(*given) : *given) == name;
  }

  /// In a list of tables: data.datasets[i].transforms.
  bool chosen_inside(const Row& row, const std::string& kind, const std::string& name) const {
    for (const Row& field : row.fields) {
      if (field.check.kind != kind && field.name != kind) {  // `dataset` names a part without being checked as one: it may be empty
        continue;
      }
      const Node value = row.get(out_.config);
      const Array* const records = value.array();
      if (records != nullptr && std::any_of(records->begin(), records->end(), [&](const Node& record) {
            const Node* given = record.table() != nullptr ? record.table()->find(field.name) : nullptr;
            return given != nullptr && names(*given, kind, name);
          })) {
        return true;
      }
    }
    return false;
  }

  bool chosen(const std::string& kind, const std::string& name) const {
    return std::any_of(rows().begin(), rows().end(), [&](const Row& row) {
      if (type_row(row.type).tables) {
        return chosen_inside(row, kind, name);
      }
      const bool asks = row.check.kind == kind && !(row.check.experts_only && !is_moe(out_.config.model));
      return asks && names(row.get(out_.config), kind, name);
    });
  }

  void read_parts() {
    for (const auto& [kind, parts] : catalog_) {
      for (const PartInfo& part : parts) {
        read_part(kind, part);
      }
    }
  }

  void read_part(const std::string& kind, const PartInfo& part) {
    const std::string key = kind + "." + part.name;
    const Node* node = part_table(kind, part.name);
    if (node && !node->table() && !(node->array() && node->array()->empty())) {
      converter_.fault(key, *node, "is not a table");
      return;
    }
    if (!node && (part.fields.empty() || !chosen(kind, part.name))) {
      return;
    }
    const Table given = node && node->table() ? *node->table() : Table();
    out_.config.parts[key] = converter_.fields(given, node ? node->origin : Origin(), part.fields, key);
  }

  bool is_part(const std::string& kind, const std::string& name) const {
    const auto found = catalog_.find(kind);
    return found != catalog_.end() &&
           std::any_of(found->second.begin(), found->second.end(), [&name](const PartInfo& part) { return part.name == name; });
  }

  /// `kind` has a table for a part that is not registered.
  void unknown_part(const std::string& kind, const std::string& name, const Node& node) {
    std::vector<std::string> names;
    for (const PartInfo& part : catalog_.at(kind)) {
      names.push_back(part.name);
    }
    const std::string near = name.size() <= 64 ? nearest(name, names) : "";
    converter_.fault_at(kind + "." + name, node.key_origin,
                        format("[{}.{}] is the table of no registered {}; {}have: {}", kind, name, kind,
                               near.empty() ? "" : "did you mean '" + near + "'? ", join(names, ", ")));
  }

  void find_unknown_keys() {
    std::vector<std::string> top{"extends"};
    for (const Section& section : sections()) {
      top.push_back(section.name);
    }
    for (const Row& row : rows()) {
      if (row.section.empty()) {
        top.push_back(row.name);
      }
    }
    for (const auto& [name, node] : out_.merged) {
      if (is_section(name)) {
        find_unknown_in_section(name, *node.table());
      } else if (catalog_.contains(name) && node.table()) {
        for (const auto& [part, table] : *node.table()) {
          if (!is_part(name, part)) {
            unknown_part(name, part, table);
          }
        }
      } else if (std::find(top.begin(), top.end(), name) == top.end() || name == "extends") {
        converter_.fault_at(name, node.key_origin, name == "extends" ? "extends belongs in a file" : unknown_key("", name, top));
      }
    }
  }

  void find_unknown_in_section(const std::string& section, const Table& table) {
    std::vector<std::string> names;
    for (const Row& row : rows()) {
      if (row.section == section) {
        names.push_back(row.name);
      }
    }
    for (const auto& [name, node] : table) {
      if (std::find(names.begin(), names.end(), name) != names.end() || is_part(section, name)) {
        continue;
      }
      if (node.table() && catalog_.contains(section)) {
        unknown_part(section, name, node);
      } else {
        converter_.fault_at(section + "." + name, node.key_origin, unknown_key(section, name, names));
      }
    }
  }

  const Catalog& catalog_;
  Loaded& out_;
  Converter converter_;
};

/// The budget and the number of steps may come from different layers: the higher one is meant.
void settle_budget(Loaded& loaded) {
  const Node* steps = find_node(loaded.merged, "train.max_steps");
  const Node* tokens = find_node(loaded.merged, "train.max_tokens");
  TrainConfig& train = loaded.config.train;
  if (!steps || !tokens || !train.max_tokens) {
    return;
  }
  const auto rank = [&loaded](std::string_view key) {
    for (std::size_t i = loaded.layers.size(); i > 0; --i) {
      if (find_node(loaded.layers[i - 1], key)) {
        return i;
      }
    }
    return std::size_t{0};
  };
  const std::size_t steps_layer = rank("train.max_steps");
  const std::size_t tokens_layer = rank("train.max_tokens");
  if (steps_layer < tokens_layer) {
    loaded.report.warnings.push_back(
        format("train.max_tokens ({}) replaces train.max_steps ({})", to_text(tokens->origin), to_text(steps->origin)));
    train.max_steps = TrainConfig().max_steps;
  } else if (steps_layer > tokens_layer) {
    loaded.report.warnings.push_back(
        format("train.max_steps ({}) replaces train.max_tokens ({})", to_text(steps->origin), to_text(tokens->origin)));
    train.max_tokens.reset();
  }
}

/// The defaults of these folders lie below run.dir. Whoever writes the same name down means the working folder: "./checkpoints".
void settle_folders(Loaded& loaded) {
  for (const char* key : {"checkpoint.dir", "metrics.tensorboard_dir", "metrics.mlflow_dir", "profiling.trace_dir"}) {
    const Row& row = *find_row(key);
    if (find_node(loaded.merged, key) && row.get(loaded.config) == row.fallback) {
      row.set(loaded.config, Node("./" + std::get<std::string>(row.fallback.value)));
    }
  }
}

void name_run(const Request& request, Config& config) {
  if (!config.run.name.empty()) {
    return;
  }
  const fs::path source = !request.job.empty() ? request.job : fs::path(request.recipe ? request.recipe->origin.file : "");
  config.run.name = source.stem().string();
}

void sort_problems(Report& report) {
  std::stable_sort(report.problems.begin(), report.problems.end(), [](const Problem& a, const Problem& b) {
    const auto place = [](const Problem& problem) {
      const Origin& origin = problem.origin;
      const bool cli = origin.kind == Origin::Kind::cli;
      return std::tuple(cli, cli ? std::string() : origin.file, origin.line, origin.column);
    };
    return place(a) < place(b);
  });
}

}  // namespace

Loaded load(const Request& request, const Catalog& catalog) {
  Loaded out;
  out.layers = read_layers(request, out.report);
  for (const Table& layer : out.layers) {
    lay(out.merged, layer, out.report);
  }
  if (!request.overrides.empty()) {
    Table& command_line = out.layers.emplace_back();
    int position = 0;
    for (const std::string& argument : request.overrides) {
      if (const std::optional<Override> option = parse_override(argument, ++position, out.report)) {
        apply_override(out.merged, *option, out.report);
        remember(command_line, *option);
      }
    }
  }
  settle_paths(out.merged, out.report);
  const std::optional<ModelPreset> preset = lay_model_preset(out.merged, out.layers, out.report);
  lay_phases(out.merged, catalog);
  ConfigReader reader(catalog, out);
  reader.read();
  if (preset) {
    warn_of_overrides(*preset, out);
  }
  settle_budget(out);
  settle_folders(out);
  name_run(request, out.config);
  validate({out.config, out.merged, reader.broken(), request.world, request.files_must_exist, request.trains}, out.report);
  sort_problems(out.report);
  return out;
}

Loaded load_or_fail(const Request& request, const Catalog& catalog) {
  Loaded out = load(request, catalog);
  if (!out.report.problems.empty()) {
    throw Error(Code::config, to_text(out.report));
  }
  for (const std::string& warning : out.report.warnings) {
    log::warn("{}", warning);
  }
  return out;
}

}  // namespace kf::config
