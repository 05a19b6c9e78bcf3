#include "config/show/emit.h"

#include <cctype>
#include <cmath>

#include "config/plan/derived.h"
#include "config/rules/unbuilt.h"
#include "core/ascii.h"
#include "core/text.h"
#include "core/wrap.h"

namespace kf::config {
namespace {

constexpr std::size_t kColumns = 80;

std::string toml_real(double value) {
  const std::string text = kf::to_text(value);
  // "-0" and "3" would read as integers; a sign of zero is worth keeping.
  return std::isfinite(value) && text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string toml_key(const std::string& key) {
  const auto bare = [](char c) { return is_alnum(c) || c == '_' || c == '-'; };
  bool plain = !key.empty();
  for (const char c : key) {
    plain = plain && bare(c);
  }
  return plain ? key : kf::quoted(key);
}

std::string toml_value(const Node& node) {
  struct Writer {
    std::string operator()(std::monostate) const { return "unset"; }
    std::string operator()(bool value) const { return kf::to_text(value); }
    std::string operator()(std::int64_t value) const { return kf::to_text(value); }
    std::string operator()(double value) const { return toml_real(value); }
    std::string operator()(const std::string& value) const { return kf::quoted(value); }
    std::string operator()(const Array& value) const {
      std::vector<std::string> parts;
      for (const Node& item : value) {
        parts.push_back(toml_value(item));
      }
      return "[" + join(parts, ", ") + "]";
    }
    std::string operator()(const Table& value) const {
      std::vector<std::string> parts;
      for (const auto& [key, item] : value) {
        if (item.is_null()) {
          continue;  // unset: TOML has no word for it
        }
        parts.push_back(toml_key(key) + " = " + toml_value(item));
      }
      return parts.empty() ? "{}" : "{ " + join(parts, ", ") + " }";
    }
  };
  return std::visit(Writer(), node.value);
}

/// A line of the snapshot. Unset keys cannot be written in TOML; they are comments, and so is a max_steps that max_tokens replaces.
std::string toml_line(const Row& row, const Config& config) {
  const Node value = row.get(config);
  if (row.key() == "model.n_kv_heads" && value.is_null()) {
    return format("# n_kv_heads is unset: n_heads ({})\n", kv_heads(config.model));
  }
  if (value.is_null()) {
    return format("# {} is unset\n", row.name);
  }
  if (row.key() == "train.max_steps" && config.train.max_tokens && config.train.max_steps == TrainConfig().max_steps) {
    return "# max_steps follows from max_tokens\n";
  }
  if (row.key() == "train.grad_accum_steps" && (config.train.global_batch_size || !config.train.batch_schedule.empty())) {
    return format("# grad_accum_steps follows from {}\n", config.train.global_batch_size ? "global_batch_size" : "batch_schedule");
  }
  // The default of these folders lies below run.dir and must stay the default.
  return format("{} = {}\n", row.name, toml_value(value));
}

std::string part_tables(const Config& config, const std::string& section) {
  std::string out;
  for (const auto& [key, options] : config.parts) {
    const std::size_t dot = key.find('.');
    const std::string kind = key.substr(0, dot);
    if (options.empty() || (section.empty() ? is_section(kind) : kind != section)) {
      continue;
    }
    out += format("\n[{}.{}]\n", kind, toml_key(key.substr(dot + 1)));
    for (const auto& [name, value] : options) {
      out += value.is_null() ? format("# {} is unset\n", name) : format("{} = {}\n", toml_key(name), toml_value(value));
    }
  }
  return out;
}

bool is_output_folder(const Row& row) {
  return row.key() == "checkpoint.dir" || row.key() == "metrics.tensorboard_dir" || row.key() == "metrics.mlflow_dir" ||
         row.key() == "profiling.trace_dir";
}

std::string section_lines(const Config& config, const std::string& section) {
  std::string out;
  for (const Row& row : rows()) {
    if (row.section == section) {
      const bool below_run = is_output_folder(row) && row.get(config) == row.fallback;
      out += below_run ? format("# {} is {} below run.dir\n", row.name, toml_value(row.fallback)) : toml_line(row, config);
    }
  }
  return out;
}

std::string markdown_cell(std::string text) {
  for (std::size_t at = text.find('|'); at != std::string::npos; at = text.find('|', at + 2)) {
    text.replace(at, 1, "\\|");
  }
  return text;
}

std::string markdown_rows(const std::vector<Row>& fields) {
  std::string out = "| key | type | default | allowed | |\n|---|---|---|---|---|\n";
  for (const Row& row : fields) {
    out += format("| `{}` | {} | `{}` | {} | {} |\n", row.name, type_text(row), value_text(row.fallback), markdown_cell(allowed_text(row)),
                  markdown_cell(doc_text(row)));
  }
  return out;
}

std::vector<Row> rows_of(const std::string& section) {
  std::vector<Row> out;
  for (const Row& row : rows()) {
    if (row.section == section) {
      out.push_back(row);
    }
  }
  return out;
}

bool matches(const Row& row, const std::string& pattern) {
  const std::string key = row.key();
  if (pattern.empty() || row.section == pattern || key == pattern) {
    return true;
  }
  if (pattern.find_first_of("*?") != std::string::npos) {
    return glob_match(pattern, key);
  }
  return !is_section(pattern) && (key.find(pattern) != std::string::npos || lower(row.doc).find(lower(pattern)) != std::string::npos);
}

}  // namespace

std::string to_toml(const Config& config) {
  std::string out = section_lines(config, "");
  for (const Section& section : sections()) {
    out += format("\n[{}]\n", section.name) + section_lines(config, section.name) + part_tables(config, section.name);
  }
  return out + part_tables(config, "");
}

Node to_tree(const Config& config) {
  Table out;
  for (const Row& row : rows()) {
    Table& table = row.section.empty() ? out : [&]() -> Table& {
      Node& section = out[row.section];
      if (!section.table()) {
        section = Node(Table());
      }
      return *section.table();
    }();
    table[row.name] = row.get(config);
  }
  (*out["model"].table())["n_kv_heads"] = Node(kv_heads(config.model));
  for (const auto& [key, options] : config.parts) {
    const std::size_t dot = key.find('.');
    Node& kind = out[key.substr(0, dot)];
    if (!kind.table()) {
      kind = Node(Table());
    }
    (*kind.table())[key.substr(dot + 1)] = Node(options);
  }
  return Node(std::move(out));
}

std::string value_text(const Node& value) { return toml_value(value); }

std::string type_text(const Row& row) { return std::string(type_row(row.type).name) + (row.optional ? ", optional" : ""); }

std::string allowed_text(const Row& row) {
  std::string words = row.check.words();
  if (words.starts_with("must be ")) {
    words = words.substr(8);
  }
  if (words == "positive") {
    words = "> 0";
  } else if (words.starts_with("positive;")) {
    words = "> 0";
  } else if (words.starts_with("non-negative")) {
    words = ">= 0";
  }
  if (row.check.infinite) {
    words += " or inf";
  }
  return words + (row.check.experts_only ? " (with experts)" : "");
}

std::string doc_text(const Row& row) {
  const std::optional<std::string> note = unbuilt_note(row.key());
  return note ? row.doc + (" " + *note) : std::string(row.doc);
}

std::string to_markdown() {
  std::string out =
      "# Settings\n\n"
      "<!-- Made by `kf-host config docs` from host/config/schema/fields.def; edit that file. -->\n\n"
      "A job is a TOML file of these sections. Layers, later ones win: defaults, the file named by `extends` (relative to the file that "
      "names it; chains; a list of files lays later ones over earlier ones),\n"
      "the job, a Lua recipe's table, and `--section.key=value` on the command line.\n"
      "On the command line values may be written as in TOML, as in Python (`True`, `None`, `(0.9, 0.95)`, `{'path': 'a'}`) or as bare "
      "text;\n"
      "`--flag` alone is true, yes/no/on/off are booleans, `1e3` is an integer, `null` or `None` empties an optional key, and\n"
      "`--data.datasets[0].weight=0.7` reaches into a list. `kf-host config explain KEY` says where a value comes from.\n"
      "Parts (optimizers, norms, hooks, ...) with fields of their own read them from `[KIND.NAME]`; `kf-host registry KIND` lists them.\n";
  std::vector<Row> records;
  for (const Section& section : sections()) {
    out += format("\n## [{}]\n\n{}\n\n", section.name, section.doc) + markdown_rows(rows_of(section.name));
    for (const Row& row : rows_of(section.name)) {
      if (!row.fields.empty()) {
        const bool tables = type_row(row.type).tables;
        out += format("\n### {}{}.{}{}\n\n", tables ? "[[" : "[", row.section, row.name, tables ? "]]" : "]") + markdown_rows(row.fields);
      }
    }
  }
  out += "\n## Outside the sections\n\n" + markdown_rows(rows_of(""));
  for (const Row& row : rows_of("")) {
    if (!row.fields.empty()) {
      out += format("\n### [[{}]]\n\n", row.name) + markdown_rows(row.fields);
    }
  }
  return out;
}

std::string keys_table(const std::string& pattern) {
  std::string out;
  for (const Row& row : rows()) {
    if (matches(row, pattern)) {
      const std::string allowed = allowed_text(row);
      out += wrapped(format("{} = {}  ({}{})", row.key(), value_text(row.fallback), type_text(row), allowed.empty() ? "" : "; " + allowed),
                     kColumns, 4) +
             "\n" + wrapped("    " + doc_text(row), kColumns, 4) + "\n";
    }
  }
  return out;
}

std::string sections_text() {
  std::string out;
  for (const Section& section : sections()) {
    std::string keys = "     ";
    for (const Row& row : rows_of(section.name)) {
      keys += " " + row.name;
    }
    out += wrapped(format("  [{}]  {}", section.name, section.doc), kColumns, 4) + "\n" + wrapped(keys, kColumns, 6) + "\n";
  }
  return out;
}

}  // namespace kf::config
