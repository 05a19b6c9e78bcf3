#pragma once
// What a run and `--dry-run` look at alike, once the parts are there.

#include <string>
#include <vector>

#include "config/plan/plan.h"
#include "data/loader/eval_sets.h"
#include "data/loader/loader.h"
#include "metrics/peak.h"
#include "model/model.h"
#include "registry/registries.h"
#include "run/device.h"

namespace kf {

/// The type that train.mixed_precision computes in.
at::ScalarType compute_type(const config::TrainConfig& train);

/// The rate that MFU is a share of: of the device, in that type.
Peak peak_of(const ComputeDevice& compute, const config::TrainConfig& train);

/// distributed.plan has nothing to split on one rank; what it says must still hold for this model, or Code::config (Code::script where a
/// part of a script said it).
void check_plan(const config::Config& config, const Registries& registries, Model& model);

/// A run is no longer than its data (data.epochs, data.mix_stop): schedules must know that from the start, so `plan` gets that length, and
/// a note. Where phases change how much a step takes, only the loop can tell. Throws Code::data for data without one update.
void end_with_data(const config::Config& config, const Loader& data, config::Plan& plan);

/// What a checkpoint keeps of the data, to see whether they are the same when the run goes on.
std::string data_record_of(const Loader& training, const std::vector<EvalSet>& sets);

}  // namespace kf
