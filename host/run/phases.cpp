#include "run/phases.h"

#include "config/load/convert.h"
#include "config/load/load.h"
#include "config/schema/schema.h"
#include "core/error.h"
#include "train/loop/data_phases.h"

namespace kf {
namespace {

using config::Node;
using config::PhaseEntry;
using config::Table;

/// An entry as a table with every key.
Table to_table(const PhaseEntry& entry) {
  config::Config holder;
  holder.phases = {entry};
  return *config::find_row("phases")->get(holder).array()->front().table();
}

/// What the part gives, under what the entry itself gives.
PhaseEntry merged(const PhaseEntry& entry, const Table& own, const Registries& registries) {
  static const Table defaults = to_table({});
  Table table = own;
  for (const auto& [key, value] : to_table(entry)) {
    if (!(value == *defaults.find(key))) {
      table[key] = value;
    }
  }
  const config::Row& row = *config::find_row("phases");
  config::Report report;
  const config::Catalog catalog = registries.catalog();
  config::Converter converter(catalog, report);
  const std::optional<Node> list = converter.convert(Node(config::Array{Node(std::move(table))}), row, "phases");
  if (!list || !report.problems.empty()) {
    const std::string origin = registries.phase.get(entry.phase).info.origin;
    fail(Code::script, "{}: phase '{}': {}", origin, entry.phase, report.problems.front().message);
  }
  config::Config holder;
  row.set(holder, *list);
  return holder.phases.front();
}

Phase make_phase(const config::Config& config, const Registries& registries, const PhaseEntry& given, std::size_t index) {
  Phase phase;
  PhaseEntry entry = given;
  if (!given.phase.empty()) {
    phase.rules = make_part(registries.phase, given.phase, config, registries);
    entry = merged(given, phase.rules->entry(), registries);
  }
  phase.name = !entry.name.empty() ? entry.name : format("phase {}", index + 1);
  phase.steps = entry.steps;
  phase.until_step = entry.until_step;
  phase.lr_scale = entry.lr_scale;
  phase.freeze = entry.freeze;
  if (!entry.mixture.empty()) {
    phase.data.weights = entry.mixture;
  }
  phase.data.batch_size = entry.batch_size;
  phase.data.seq_len = entry.seq_len;
  if (!entry.loss.empty()) {
    phase.loss = make_part(registries.loss, entry.loss, config, registries);
  }
  return phase;
}

}  // namespace

Phases make_phases(const config::Config& config, const Registries& registries, std::int64_t max_steps) {
  std::vector<Phase> phases = data_phases(config.data, max_steps);
  for (std::size_t i = 0; i < config.phases.size(); ++i) {
    phases.push_back(make_phase(config, registries, config.phases[i], i));
  }
  return Phases(std::move(phases), max_steps);
}

}  // namespace kf
