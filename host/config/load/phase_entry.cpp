#include "config/load/phase_entry.h"

#include <algorithm>

#include "config/load/convert.h"
#include "config/schema/schema.h"
#include "core/error.h"

namespace kf::config {
namespace {

const Row& phases_row() {
  static const Row& row = *find_row("phases");
  return row;
}

void lay_under(Table& entry, const Table& own) {
  for (const auto& [key, node] : own) {
    const auto& rows = phases_row().fields;
    const auto row = std::find_if(rows.begin(), rows.end(), [&, name = key](const Row& one) { return one.name == name; });
    const Node* const given = entry.find(key);
    if (given == nullptr || (row != rows.end() && *given == row->fallback)) {
      entry[key] = node;
    }
  }
}

void lay_entry(Table& entry, const std::vector<PartInfo>& parts) {
  const Node* const phase = entry.find("phase");
  const auto* const name = phase != nullptr ? std::get_if<std::string>(&phase->value) : nullptr;
  const auto part = std::find_if(parts.begin(), parts.end(), [&](const PartInfo& one) { return name != nullptr && one.name == *name; });
  if (part != parts.end()) {
    lay_under(entry, part->entry);
  }
}

}  // namespace

void lay_phases(Table& merged, const Catalog& catalog) {
  Node* const phases = merged.find("phases");
  const auto parts = catalog.find("phase");
  if (phases == nullptr || parts == catalog.end()) {
    return;
  }
  if (Table* const alone = phases->table()) {
    lay_entry(*alone, parts->second);
  } else if (Array* const list = phases->array()) {
    for (Node& item : *list) {
      if (Table* const entry = item.table()) {
        lay_entry(*entry, parts->second);
      }
    }
  }
}

PhaseEntry lay_phase(const PhaseEntry& entry, const Table& own, const Catalog& catalog, const std::string& key, const std::string& where) {
  Config holder;
  holder.phases = {entry};
  Node list = phases_row().get(holder);
  lay_under(*list.array()->front().table(), own);
  Report report;
  Converter converter(catalog, report);
  const Table whole = converter.fields(*list.array()->front().table(), {}, phases_row().fields, key);
  if (!report.problems.empty()) {
    fail(Code::script, "{}: {}", where, report.problems.front().message);
  }
  phases_row().set(holder, Node(Array{Node(whole)}));
  return holder.phases.front();
}

}  // namespace kf::config
