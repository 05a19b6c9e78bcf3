#pragma once
// The rules over several keys. Bounds of single keys are in their rows (fields.def) and checked while reading.

#include <optional>
#include <set>
#include <string>

#include "config/schema/config.h"
#include "config/schema/report.h"
#include "config/tree/node.h"

namespace kf::config {

/// What the rules may look at.
struct Job {
  const Config& config;
  const Table& merged;
  const std::set<std::string>& broken;  // keys without a usable value: rules over them are left out
  std::optional<std::int64_t> world;
  bool files_must_exist = true;
  bool trains = true;  // not where a trained model is only read, without the sections of its training
};

/// Runs every rule; each is independent of the others.
void validate(const Job& job, Report& report);

}  // namespace kf::config
