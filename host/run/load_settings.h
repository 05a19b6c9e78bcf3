#pragma once
// How a run takes weights and state from elsewhere, by [checkpoint].

#include "checkpoint/files/load_rules.h"
#include "checkpoint/files/weights.h"
#include "checkpoint/take_state.h"
#include "config/schema/config.h"
#include "run/start.h"

namespace kf {

/// Where a run takes its weights from.
enum class LoadFrom { nowhere, init_from, load_path, own };
LoadFrom loads_from(const config::Config& config, const Start& start);

/// What becomes of rows of the vocabulary that checkpoint.init_from lacks.
VocabRows vocab_rows(const config::Config& config);
/// strict, exclude_from_loading, name_map and init_layers, as far as they are about this source; the run's own checkpoints are loaded
/// whole.
LoadRules load_rules(const config::CheckpointConfig& checkpoint, LoadFrom from);

/// What a resume leaves where it is.
struct LeftParts {
  StateRules state;
  bool data = false;  // the data begin anew
};
LeftParts left_parts(const config::CheckpointConfig& checkpoint, const Start& start, LoadFrom from);

}  // namespace kf
