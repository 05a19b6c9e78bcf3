#pragma once
// From a case's sections to a checked Config, the way a recipe's table becomes one.

#include <memory>
#include <string>

#include "config/schema/config.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "parity/json.h"
#include "registry/registries.h"
#include "train/step/loss.h"

namespace kf::parity {

/// Sections by name -> Config, through all layers and rules. Null values are left out (unset). Throws with the report.
config::Config job_of(const Table& sections, const Registries& registries);

/// From now on jobs take the plain twins of fused pieces.
void use_plain_twins();

/// `sections`[section] = every entry of `values` that is not null.
void put(Table& sections, const std::string& section, const Table& values);
void put(Table& sections, const std::string& section, const std::string& key, Node value);

std::unique_ptr<Loss> make_loss(const config::Config& config, const Registries& registries, const std::string& name);
std::unique_ptr<Optimizer> make_optimizer(const config::Config& config, const Registries& registries, const ParameterList& parameters);

}  // namespace kf::parity
