#include "config/show/explain.h"

#include <map>

#include "config/load/names.h"
#include "config/plan/derived.h"
#include "config/schema/schema.h"
#include "config/show/emit.h"
#include "core/error.h"
#include "core/text.h"
#include "core/wrap.h"

namespace kf::config {
namespace {

/// A value of a lower layer as it was written: the command line's text loses nothing.
std::string written(const Node& node) {
  if (node.origin.kind == Origin::Kind::cli && !node.origin.text.empty()) {
    return node.origin.text;
  }
  return value_text(node);
}

/// "0.0006 from recipe.lua:12, was 0.0003 from debug.toml:21, was 0.0003 by default"
std::string chain(const Loaded& loaded, const std::string& key, const Node& value, const Node& fallback) {
  std::string out = value_text(value);
  bool first = true;
  for (auto layer = loaded.layers.rbegin(); layer != loaded.layers.rend(); ++layer) {
    if (const Node* node = find_node(*layer, key)) {
      out += first ? " from " + to_text(node->origin) : format(", was {} from {}", written(*node), to_text(node->origin));
      first = false;
    }
  }
  // No layer gives what a registered phase does.
  if (const Node* const laid = find_node(loaded.merged, key); first && laid != nullptr && laid->origin.kind != Origin::Kind::fallback) {
    out += " from " + to_text(laid->origin);
    first = false;
  }
  return out + (first ? " by default" : format(", {} by default", value_text(fallback)));
}

std::string row_text(const Loaded& loaded, const Row& row, const std::string& key, const Node& value, const Catalog& catalog) {
  std::string out = format("{} = {}\n", key, chain(loaded, key, value, row.fallback));
  out += format("  type     {}\n", type_text(row));
  std::string allowed = allowed_text(row);
  if (!row.check.kind.empty()) {
    const std::vector<std::string> names = part_names(catalog, row.check.kind);
    allowed = names.empty() ? "what a script registers; no " + row.check.kind + " is here"
                            : "one of " + join(names, ", ") + "; `kf-host registry " + row.check.kind + "` says more";
  }
  if (!allowed.empty()) {
    out += format("  allowed  {}\n", allowed);
  }
  for (const Row& field : row.fields) {
    out += format("  .{}  {}, {} by default: {}\n", field.name, type_text(field), value_text(field.fallback), field.doc);
  }
  if (key == "model.n_kv_heads" && value.is_null()) {
    out += format("  here     {}, as model.n_heads\n", kv_heads(loaded.config.model));
  }
  return out + wrapped("  " + doc_text(row), 80, 2) + "\n";
}

/// "optimizer.mine.alpha", a field of a part's own table.
std::string part_field_text(const Loaded& loaded, const std::string& key, const Catalog& catalog) {
  for (const auto& [kind, parts] : catalog) {
    for (const PartInfo& part : parts) {
      for (const Row& row : part.fields) {
        const std::string table = kind + "." + part.name;
        if (key == table + "." + row.name) {
          const auto found = loaded.config.parts.find(table);
          const Node* value = found == loaded.config.parts.end() ? nullptr : found->second.find(row.name);
          return row_text(loaded, row, key, value ? *value : row.fallback, catalog);
        }
      }
    }
  }
  return "";
}

/// Whether `middle` leads from a key to a field of it: "[12]." into a list of tables, "." into a table.
bool leads_to_field(std::string_view middle, Type type) {
  if (!type_row(type).tables) {
    return middle == ".";
  }
  const bool bracketed = middle.size() > 3 && middle.starts_with('[') && middle.ends_with("].");
  return bracketed && middle.substr(1, middle.size() - 3).find_first_not_of("0123456789") == std::string_view::npos;
}

/// A field inside a table or list: "checkpoint.dyn_ckpt_window.stop", "data.datasets[0].weight"; with its default where the job has none.
std::string nested_text(const Loaded& loaded, const std::string& key, const Catalog& catalog) {
  for (const Row& row : rows()) {
    for (const Row& field : row.fields) {
      const std::size_t begin = row.key().size();
      if (!key.starts_with(row.key()) || !key.ends_with("." + field.name) || begin + field.name.size() >= key.size() ||
          !leads_to_field(std::string_view(key).substr(begin, key.size() - begin - field.name.size()), row.type)) {
        continue;
      }
      Table holder;
      holder["value"] = row.get(loaded.config);
      const Node* const value = find_node(holder, "value" + key.substr(begin));
      return row_text(loaded, field, key, value != nullptr ? *value : field.fallback, catalog);
    }
  }
  return "";
}

[[noreturn]] void unknown(const std::string& key) {
  const std::size_t dot = key.rfind('.');
  const std::string section = dot == std::string::npos ? "" : key.substr(0, dot);
  std::vector<std::string> names;
  for (const Row& row : rows()) {
    if (row.section == section) {
      names.push_back(row.name);
    }
  }
  for (const Section& each : sections()) {
    if (section.empty()) {
      names.push_back(each.name);
    }
  }
  throw Error(Code::config, unknown_key(section, key.substr(dot == std::string::npos ? 0 : dot + 1), names));
}

/// Every value of a job by its full key: records and parts taken apart.
std::map<std::string, Node> flat(const Config& config) {
  std::map<std::string, Node> out;
  for (const Row& row : rows()) {
    out[row.key()] = row.get(config);
  }
  for (const auto& [key, options] : config.parts) {
    for (const auto& [name, value] : options) {
      out[key + "." + name] = value;
    }
  }
  return out;
}

std::string where(const Loaded& loaded, const std::string& key) {
  const Node* node = find_node(loaded.merged, key);
  return node ? to_text(node->origin) : "default";
}

}  // namespace

std::string explain(const Loaded& loaded, const std::string& key, const Catalog& catalog) {
  if (const Row* row = find_row(key)) {
    return row_text(loaded, *row, key, row->get(loaded.config), catalog);
  }
  if (is_section(key)) {
    return keys_table(key);
  }
  for (const std::string& text : {part_field_text(loaded, key, catalog), nested_text(loaded, key, catalog)}) {
    if (!text.empty()) {
      return text;
    }
  }
  unknown(key);
}

std::string diff(const Loaded& a, const Loaded& b) {
  const std::map<std::string, Node> left = flat(a.config);
  const std::map<std::string, Node> right = flat(b.config);
  std::map<std::string, Node> keys = left;
  keys.insert(right.begin(), right.end());
  std::string out;
  for (const auto& [key, ignored] : keys) {
    const auto x = left.find(key);
    const auto y = right.find(key);
    const std::string before = x == left.end() ? "absent" : value_text(x->second);
    const std::string after = y == right.end() ? "absent" : value_text(y->second);
    if (before != after && key != "run.name") {
      out += format("{}  {} \u2192 {}  ({} \u2192 {})\n", key, before, after, where(a, key), where(b, key));
    }
  }
  return out.empty() ? "no differences\n" : out;
}

}  // namespace kf::config
