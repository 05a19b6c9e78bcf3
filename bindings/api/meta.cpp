#include "bindings/api/meta.h"

#include <algorithm>

#include "bindings/api/api.h"
#include "bindings/api/meta_operators.h"
#include "config/schema/schema.h"
#include "core/text.h"

namespace kf::lua {
namespace {

using config::Row;

std::string type_of(const Row& row) {
  const std::string type = config::lua_type(row);
  // In a script a list may hold more than the settings know of.
  return row.key() == "hooks" ? "(string|kf.Hook|table)[]" : row.key() == "phases" ? "(string|" + config::lua_class(row) + ")[]" : type;
}

std::string field(const std::string& name, const std::string& type, const std::string& doc) {
  return format("---@field {} {}{}\n", name, type, doc.empty() ? "" : "  " + doc);
}

std::string record_text(const Row& row) {
  std::string out = format("\n---@class {}\n", config::lua_class(row));
  for (const Row& inner : row.fields) {
    // In a script a phase's factor may be a function, and it may have a stop_when.
    const bool factor = row.key() == "phases" && inner.name == "lr_scale";
    out += field(inner.name + "?", factor ? "number|fun(t: number): number" : type_of(inner), inner.doc);
  }
  if (row.key() == "phases") {
    out += field("stop_when?", "fun(ctx: kf.HookContext): boolean", "Ends the phase before its length.");
  }
  return out;
}

std::string config_text() {
  std::string whole =
      "\n---@class kf.Config\n" +
      field("extends?", "string|string[]", "The job that this one is laid over, relative to the script; several: later ones win.");
  std::string parts;
  std::string records;
  for (const config::Section& section : config::sections()) {
    whole += field(section.name + "?", "kf.Config." + section.name, section.doc);
    parts += format("\n---@class kf.Config.{}\n---@field [string] any  own tables of parts\n", section.name);
    for (const Row& row : config::rows()) {
      if (row.section == section.name) {
        parts += field(row.name + "?", type_of(row), row.doc);
        records += row.fields.empty() ? "" : record_text(row);
      }
    }
  }
  for (const Row& row : config::rows()) {
    if (row.section.empty()) {
      whole += field(row.name + "?", type_of(row), row.doc);
      records += row.fields.empty() ? "" : record_text(row);
    }
  }
  return whole + "---@field [string] any  own tables of parts: hook = { NAME = { ... } }\n" + parts + records;
}

/// Text inside of a table's cell.
std::string in_cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    out += c == '|' ? std::string("\\|") : std::string(1, c);
  }
  return out;
}

std::string words(const ApiRow& row) { return std::string(row.doc) + (row.unit.empty() ? "" : " [" + std::string(row.unit) + "]"); }

std::string api_text() {
  std::string out;
  std::string_view owner;
  for (const ApiRow& row : api_rows()) {
    if (row.owner != owner) {
      owner = row.owner;
      out += format("\n---@class {}{}\n", owner, owner == "kf.Tensor" ? ": kf.Methods" : owner == "kf" ? ": kf.Op" : "");
    }
    const bool optional = row.type.ends_with('?');
    const bool plain = row.name.find('/') == std::string_view::npos;
    std::string name = plain ? std::string(row.name) : format("[\"{}\"]", row.name);
    std::string_view type = row.type;
    if (optional) {
      name += "?";
      type.remove_suffix(1);
    }
    out += field(name, std::string(type), words(row));
  }
  return out;
}

}  // namespace

std::string api_markdown() {
  std::string out =
      "# Lua API\n\n<!-- Made by `kf-host config api` from bindings/api/api.cpp; edit that file. -->\n\n"
      "What scripts see, a table a class. Types are those of lua-language-server: `name?` may be left out, `fun(...)` is a function, `a|b` "
      "either.\n"
      "[scripting.md](scripting.md) says how it fits together, [config.md](config.md) has the keys of jobs (`kf.Config`). `kf.Tensor` has "
      "every\n"
      "operator of LibTorch as a method besides; `kf.op.help(\"softmax\")` prints the signatures of one.\n";
  std::string_view owner;
  for (const ApiRow& row : api_rows()) {
    if (row.owner != owner) {
      owner = row.owner;
      out += format("\n## {}\n\n| name | type | |\n|---|---|---|\n", owner);
    }
    out += format("| `{}` | `{}` | {} |\n", row.name, in_cell(row.type), in_cell(words(row)));
  }
  return out;
}

std::string meta_text() {
  return "---@meta kf\n-- Made by `kf-host config meta`; never loaded. It tells editors what scripts can use.\n" + api_text() +
         operators_text() + config_text() + "\n---@type kf\nlocal kf\n\nreturn kf\n";
}

}  // namespace kf::lua
