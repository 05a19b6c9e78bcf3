#pragma once
// How scripts want weights divided over tp: hints at layers (shard = "colwise"), and registered plans by name (distributed.plan).

#include "config/schema/config.h"
#include "model/model.h"
#include "registry/registries.h"

namespace kf {

/// Applies the plan and then the hints of `model`, whose weights have their names. A linear layer of a script is divided as asked, and
/// gathers its outputs or adds up its shares by itself, so that whatever the script does around it stays right. "sequence" is "replicate":
/// scripts have whole sequences. On one rank nothing happens.
/// Throws Code::config, naming the weight, for one that is to be divided and is not a linear layer's: what reads it reads all of it; for
/// one of an expert that distributed.ep gives to one rank; and for a plan that divides a native layer otherwise than this does itself.
void split_as_planned(Model& model, const config::Config& config, const Registries& registries, const World* world);

}  // namespace kf
