#include "run/phases.h"

#include "config/load/phase_entry.h"
#include "core/error.h"
#include "train/loop/data_phases.h"

namespace kf {
namespace {

using config::PhaseEntry;

Phase make_phase(const config::Config& config, const Registries& registries, const PhaseEntry& given, std::size_t index) {
  Phase phase;
  PhaseEntry entry = given;
  if (!given.phase.empty()) {
    phase.rules = make_part(registries.phase, given.phase, config, registries);
    if (const config::Table own = phase.rules->entry(); !own.empty()) {
      const std::string where = format("{}: phase '{}'", registries.phase.get(given.phase).info.origin, given.phase);
      entry = config::lay_phase(given, own, registries.catalog(), format("phases[{}]", index), where);
    }
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
